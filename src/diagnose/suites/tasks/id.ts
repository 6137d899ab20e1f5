import type { Probe } from "../../asking/probe.ts";
import { askMade, followMade, isMade, type MadeTask, makeTask, type NoTask } from "../../asking/tasks/make-task.ts";
import { askTask, type Judgement, type Talk } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";

/** Fewer can be tried out; a random UUID has 122. */
const guessableBits = 64;
const comfortableBits = 110;
const endsMs = 3_000;
const joined = "The server gives the same task for the same call";
const nameAnother = "name another tool with --tool and --args.";

export const check: Check = {
  id: "tasks/id",
  question: "Is a task's id one that nobody can guess?",
  severity: "major",
  why: "Whoever knows a task's id can read its result or cancel it wherever callers are not told apart, so an id that can be counted or tried out gives away other people's results.",
  remedy:
    "Make ids from at least 128 random bits of the system's generator, such as a random UUID; no counters, no times, no ordinary random numbers.",
  source: "MCP 2025-11-25, Tasks, Task Isolation and Access Control; SEP-2663, Security.",
  limitMs: 20_000,
  isGentle: true,
  run: (probe) =>
    askMade(probe, { severity: severityFor(probe) }, async (talk, first): Promise<Judgement> => {
      const second = await makeAnother(talk, first);
      if (!isMade(second)) return { skip: second.why };
      const { bits, what } = look(first.taskId, second.taskId);
      const evidence = [
        probe.measured(`Two ids, made one after the other, differ in ${what}: at most ${Math.floor(bits)} bits.`),
      ];
      if (first.taskId === second.taskId)
        return { problems: [{ title: "Two tasks have the same id", severity: "blocker", evidence }] };
      if (isCounted(first.taskId, second.taskId)) return { problems: [{ title: "Task ids are counted up", evidence }] };
      if (bits < guessableBits) return { problems: [{ title: "Task ids are short enough to be guessed", evidence }] };
      if (bits < comfortableBits)
        return {
          problems: [
            {
              title: "Task ids share their beginning or are short: fewer than 122 random bits",
              severity: "info",
              evidence,
            },
          ],
        };
      return { problems: [] };
    }),
};

/**
 * Makes a second task. The same call while the first one runs may be joined to it, which is no second task; so the
 * first is ended then.
 */
async function makeAnother(talk: Talk, first: MadeTask): Promise<MadeTask | NoTask> {
  const second = await makeTask(talk);
  if (!isMade(second) || second.taskId !== first.taskId) return second;
  await askTask(talk, "tasks/cancel", first.taskId);
  const { end } = await followMade(talk, first, endsMs);
  if (end !== "terminal" && end !== "unknown") return { why: `${joined} and the first did not end; ${nameAnother}` };
  const third = await makeTask(talk);
  // An ended task that is handed out again is the same one, not two.
  const isSame = isMade(third) && third.taskId === first.taskId && third.task.createdAt === first.task.createdAt;
  return isSame ? { why: `${joined}, also after its end; ${nameAnother}` } : third;
}

/** Over pipes nobody else can ask, and with credentials the server can tell callers apart. */
function severityFor({ target }: Probe): "major" | "minor" {
  return target.kind === "http" && Object.keys(target.headers).length === 0 ? "major" : "minor";
}

/** How many bits could be behind the part in which two ids differ, judged by its characters. */
function look(first: string, second: string): { readonly bits: number; readonly what: string } {
  const start = sharedStart(first, second);
  const ends = [first.slice(start), second.slice(start)];
  // The dashes of a UUID say nothing; those of base64url are two characters of 64.
  const isHex = ends.every((text) => /^[\da-f-]*$/i.test(text));
  const rest = isHex ? ends.map((text) => text.replaceAll("-", "")) : ends;
  const length = Math.min(...rest.map((text) => text.length));
  const { name, size } = alphabetOf(rest.join(""));
  return { bits: length * Math.log2(size), what: `${length} ${name}` };
}

function alphabetOf(text: string): { readonly name: string; readonly size: number } {
  if (/^\d*$/.test(text)) return { name: "digits", size: 10 };
  if (/^[\da-f]*$/i.test(text)) return { name: "hexadecimal digits", size: 16 };
  if (/^[\da-z]*$|^[\dA-Z]*$/.test(text)) return { name: "letters of one case and digits", size: 36 };
  return { name: "characters", size: 64 };
}

/** A chance match of one or two characters is no shared beginning. */
function sharedStart(first: string, second: string): number {
  let start = 0;
  while (start < first.length && first[start] === second[start]) start++;
  return start > 2 ? start : 0;
}

function isCounted(first: string, second: string): boolean {
  const [, start, number] = /^(.*?)(\d{1,15})$/.exec(first) ?? [];
  const [, otherStart, otherNumber] = /^(.*?)(\d{1,15})$/.exec(second) ?? [];
  return (
    start !== undefined &&
    start === otherStart &&
    Math.abs(Number(number) - Number(otherNumber)) <= 100_000 &&
    Number(number) !== Number(otherNumber)
  );
}
