import { CompletionFailed } from "./completion-failed.ts";
import { type Allowance, matchProgram } from "./pattern-match.ts";
import {
  compileProgram,
  type ParsedPattern,
  type Program,
  parsePattern,
  UnreadablePattern,
} from "./pattern-program.ts";
import {
  distancesToEnd,
  type MadeTexts,
  type MakeRequest,
  type Maker,
  sampleCount,
  searchTexts,
} from "./pattern-texts.ts";

/** A pattern of a schema: what fits it, and texts that do. */
export interface Pattern {
  /**
   * Whether a text matches; undefined when the pattern is unreadable. A text that takes too many steps counts as none.
   * What it took is taken from `work`.
   */
  matches(text: string, work?: Allowance): boolean | undefined;
  /**
   * Texts that match and begin with `partial`, the shortest first: all of them when they are few. What it took is taken
   * from `work`.
   */
  make(request: MakeRequest, work?: Allowance): MadeTexts;
}

const MAX_PATTERN_CHARACTERS = 4096;
/** What one match and one search may cost: under 20 ms each, whatever the pattern. */
const MATCH_STEPS = 50_000;
const SEARCH_STEPS = 60_000;
/** A step of a pattern, against one of a schema. */
const STEP_WEIGHT = 3;

// Tried before anything is made up: nobody calls a thing `aab`.
const familiar = [
  ..."example|example_name|snake_case|example-name|kebab-case|Example|exampleName|ExampleName|EXAMPLE|EXAMPLE_NAME|example1|example name|example.txt".split(
    "|",
  ),
  ..."1|10|100|1.0|1.0.0|v1.0.0|abc|ABC|abc123|ABC-123|#336699|en|en-US|/example|example/name".split("|"),
];

const cache = new Map<string, Pattern>();
const MAX_CACHED = 200;
const MAX_CACHED_STEPS = 2000;

/** Reads a pattern. Throws when it is none; one that is valid but unreadable here tells nothing and makes nothing. */
export function readPattern(source: string): Pattern {
  const cached = cache.get(source);
  if (cached !== undefined) return cached;
  if (source.length > MAX_PATTERN_CHARACTERS) return unreadable;
  try {
    const parsed = parsePattern(source, isValidUnicode(source));
    const program = compileProgram(parsed);
    const pattern = createPattern(parsed, program);
    if (program.steps.length <= MAX_CACHED_STEPS) remember(source, pattern);
    return pattern;
  } catch (error) {
    // A pattern that RegExp knows and the parser does not yet, or one nested deeper than the stack.
    const isUnknown = error instanceof SyntaxError || error instanceof RangeError;
    if (isUnknown || error instanceof UnreadablePattern) return unreadable;
    throw error;
  }
}

const unreadable: Pattern = { matches: () => undefined, make: () => ({ texts: [], isAll: false }) };

/** JSON Schema's patterns have the flag `u`. Many in use do without it, so those count too. */
function isValidUnicode(source: string): boolean {
  for (const flags of ["u", ""]) {
    try {
      new RegExp(source, flags);
      return flags === "u";
    } catch (cause) {
      if (flags === "")
        throw new CompletionFailed("schema", `the pattern ${JSON.stringify(source)} is not a regular expression.`, {
          cause,
        });
    }
  }
  return false;
}

function remember(source: string, pattern: Pattern): void {
  if (cache.size >= MAX_CACHED)
    for (const oldest of cache.keys()) {
      cache.delete(oldest);
      break;
    }
  cache.set(source, pattern);
}

function createPattern(parsed: ParsedPattern, program: Program): Pattern {
  const matches = (text: string, allowance: Allowance) => matchProgram(program, text, allowance);
  let maker: Maker | undefined;
  // Every answer begins with what the pattern has when nothing is typed.
  let kept: { key: string; made: MadeTexts; cost: number } | undefined;

  return {
    matches(text, work) {
      const allowance = { left: MATCH_STEPS };
      const isMatch = matches(text, allowance) === true;
      if (work !== undefined) work.left -= STEP_WEIGHT * (MATCH_STEPS - allowance.left);
      return isMatch;
    },
    make(request, work) {
      const { made, cost } = request.partial === "" ? makeOnce(request) : makeNow(request);
      // What was kept costs as much as it did, so that the same request always ends with the same amount of work left.
      if (work !== undefined) work.left -= cost;
      return made;
    },
  };

  function makeOnce(request: MakeRequest): { made: MadeTexts; cost: number } {
    const key = `${request.minLength},${request.maxLength},${request.few}`;
    if (kept?.key !== key) kept = { key, ...makeNow(request) };
    return kept;
  }

  function makeNow(request: MakeRequest): { made: MadeTexts; cost: number } {
    const allowance = { left: SEARCH_STEPS };
    maker ??= createMaker();
    const made = makeTexts(maker, request, allowance);
    return { made, cost: STEP_WEIGHT * (SEARCH_STEPS - allowance.left) };
  }

  function createMaker(): Maker {
    const whole = compileProgram(parsed, { isWhole: true });
    return { program: whole, distances: distancesToEnd(whole.steps), matches };
  }
}

function makeTexts(maker: Maker, request: MakeRequest, allowance: Allowance): MadeTexts {
  const isFamiliarFit = (text: string) =>
    text.startsWith(request.partial) &&
    text.length >= request.minLength &&
    text.length <= request.maxLength &&
    maker.matches(text, allowance) === true;
  const found = searchTexts(maker, request, allowance);
  if (found.isAll) return found;
  const texts = new Set([...familiar.filter(isFamiliarFit).slice(0, sampleCount - 2), ...found.texts]);
  return { texts: [...texts].slice(0, sampleCount), isAll: false };
}
