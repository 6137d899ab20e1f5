/**
 * The built-ins of JavaScript, which every command shares with the server it runs in: one that adds to
 * `Object.prototype`, or puts a function of its own in the place of `JSON.stringify`, would silence everybody. So they
 * are looked at around each run, and put back.
 *
 * What counts as harm: a property of Object.prototype or Array.prototype that is enumerable, or has a name that the
 * language or we look for ourselves; and, while commands run, another function in the place of a built-in one. What is
 * added out of sight, as polyfills do, is fine; so is what replaces a built-in while files are loaded.
 *
 * Nothing here may rely on what a command could have changed: no iterator, and no method that was not taken at the
 * start.
 */
const { ownKeys, getOwnPropertyDescriptor, defineProperty, deleteProperty } = Reflect;

type Holder = Record<PropertyKey, unknown>;

interface Shared {
  readonly name: string;
  readonly holder: Holder;
  /** Of some only what we stand on; the rest is for whoever likes to change it. */
  readonly keys?: readonly PropertyKey[];
  /** Whether everything inherits from it. */
  readonly isRoot?: boolean;
}

const shared = [
  { name: "Object.prototype", holder: Object.prototype, isRoot: true },
  { name: "Array.prototype", holder: Array.prototype, isRoot: true },
  { name: "Object", holder: Object },
  { name: "Array", holder: Array },
  { name: "String.prototype", holder: String.prototype },
  { name: "Function.prototype", holder: Function.prototype },
  { name: "JSON", holder: JSON },
  { name: "Reflect", holder: Reflect },
  { name: "Promise", holder: Promise },
  { name: "Promise.prototype", holder: Promise.prototype },
  { name: "Map.prototype", holder: Map.prototype },
  { name: "Set.prototype", holder: Set.prototype },
  { name: "RegExp.prototype", holder: RegExp.prototype },
  { name: "Buffer", holder: Buffer },
  { name: "the iterator of lists", holder: Object.getPrototypeOf([][Symbol.iterator]()) },
  { name: "process", holder: process, keys: ["nextTick"] },
  {
    name: "globalThis",
    holder: globalThis,
    keys: [
      "Object",
      "Array",
      "JSON",
      "Promise",
      "Map",
      "Set",
      "Buffer",
      "setTimeout",
      "clearTimeout",
      "setImmediate",
      "queueMicrotask",
    ],
  },
] as unknown as readonly Shared[];

/**
 * What the language looks for in any object: when it is converted, awaited or walked through, and when it describes a
 * property.
 */
const sensitive: readonly PropertyKey[] = [
  ...["toJSON", "then", "get", "set", "value", "writable", "enumerable", "configurable"],
  ...[Symbol.iterator, Symbol.asyncIterator, Symbol.toPrimitive],
];

interface Kept {
  readonly at: Shared;
  readonly key: PropertyKey;
  readonly descriptor: PropertyDescriptor;
}

interface Baseline {
  readonly kept: readonly Kept[];
  readonly core: readonly unknown[];
  /** By the name of its holder, what is there and may stay. */
  readonly known: Readonly<Record<string, Record<PropertyKey, true>>>;
}

let baseline: Baseline | undefined;

/** From now on the built-ins are to stay as they are. */
export function keepBuiltins(): void {
  const kept: Kept[] = [];
  const known = Object.create(null) as Record<string, Record<PropertyKey, true>>;
  for (let index = 0; index < shared.length; index++) {
    const at = shared[index] as Shared;
    const names = Object.create(null) as Record<PropertyKey, true>;
    known[at.name] = names;
    const keys = at.keys ?? ownKeys(at.holder);
    for (let each = 0; each < keys.length; each++) {
      const key = keys[each] as PropertyKey;
      const descriptor = getOwnPropertyDescriptor(at.holder, key);
      names[key] = true;
      // What is computed when it is read is nobody's function to replace.
      if (descriptor !== undefined && "value" in descriptor && isBuiltin(descriptor.value))
        kept[kept.length] = { at, key, descriptor };
    }
  }
  baseline = { kept, known, core: readCore() };
}

function isBuiltin(value: unknown): boolean {
  return typeof value === "function" || (typeof value === "object" && value !== null);
}

/** Where files were loaded: what is harmful is taken away and named, and what else is new may stay. */
export function settleBuiltins(): readonly string[] {
  if (baseline === undefined) return [];
  const changes = removeAdditions(baseline);
  keepBuiltins();
  return changes;
}

/**
 * What has been changed since, each in words; it is put back on the way. Without `isThorough` only what silences a
 * server at once is looked for, which takes less than a microsecond.
 */
export function restoreBuiltins(isThorough: boolean): readonly string[] {
  if (baseline === undefined || (!isThorough && looksIntact(baseline))) return [];
  const changes = removeAdditions(baseline);
  const { kept } = baseline;
  for (let index = 0; index < kept.length; index++) {
    const { at, key, descriptor } = kept[index] as Kept;
    if (at.holder[key] === descriptor.value) continue;
    changes[changes.length] = `${wordFor(at, key)} was replaced`;
    defineProperty(at.holder, key, descriptor);
  }
  // What cannot be put back has been told, and is not told again at every look.
  if (changes.length > 0) keepBuiltins();
  return changes;
}

function removeAdditions({ known }: Baseline): string[] {
  const changes: string[] = [];
  for (let index = 0; index < shared.length; index++) {
    const at = shared[index] as Shared;
    if (at.isRoot !== true) continue;
    const keys = ownKeys(at.holder);
    for (let each = 0; each < keys.length; each++) {
      const key = keys[each] as PropertyKey;
      if (known[at.name]?.[key] === true || !isHarmful(at.holder, key)) continue;
      changes[changes.length] = `${String(key)} was added to ${at.name}`;
      deleteProperty(at.holder, key);
    }
  }
  return changes;
}

function isHarmful(holder: Holder, key: PropertyKey): boolean {
  if (getOwnPropertyDescriptor(holder, key)?.enumerable === true) return true;
  for (let index = 0; index < sensitive.length; index++) if (sensitive[index] === key) return true;
  return false;
}

function wordFor({ name }: Shared, key: PropertyKey): string {
  return name === "globalThis"
    ? String(key)
    : typeof key === "symbol"
      ? `${String(key)} of ${name}`
      : `${name}.${String(key)}`;
}

const anyObject: { readonly [name: string]: unknown } = {};
const anyList: { readonly [name: string]: unknown } = [] as never;

function looksIntact({ core }: Baseline): boolean {
  for (const _ in anyObject) return false;
  for (const _ in anyList) return false;
  if (anyObject.toJSON !== undefined || anyObject.then !== undefined || anyObject.get !== undefined) return false;
  if (anyList.toJSON !== undefined || anyList.then !== undefined) return false;
  const now = readCore();
  for (let index = 0; index < core.length; index++) if (now[index] !== core[index]) return false;
  return true;
}

/** The functions that nothing goes on without. */
function readCore(): readonly unknown[] {
  const list = Array.prototype;
  return [
    Object.keys,
    Object.values,
    Object.entries,
    Object.assign,
    Object.fromEntries,
    Object.hasOwn,
    JSON.stringify,
    JSON.parse,
    Promise,
    Promise.resolve,
    Promise.prototype.then,
    Array.isArray,
    list.push,
    list.map,
    list.filter,
    list.join,
    list[Symbol.iterator],
    Map.prototype.get,
    Map.prototype.set,
    Function.prototype.call,
    Function.prototype.apply,
    Buffer.from,
    setTimeout,
  ];
}
