import { type Clock, within } from "../clock.ts";
import { ProtocolError, RpcCode } from "../errors.ts";
import { readAllPages } from "../mcp/guest-answer.ts";
import type { GuestClient } from "../mcp/guest-client.ts";
import type { GuestView } from "../mcp/guest-view.ts";
import { badParams } from "../mcp/params.ts";
import type { Result } from "../mcp/request.ts";
import { methodNotFound } from "../mcp/router.ts";
import { excerptOf, fieldsOf, type Json, listOf, textOf } from "../wire/json.ts";
import { toEnvelope } from "../wire/request-envelope.ts";
import { couldMatch, type ResourceOwners } from "./resource-owners.ts";
import { ownInfo } from "./upstream-greeting.ts";
import { type ListedName, listFor } from "./upstream-lists.ts";
import type { NamedKind, NamedThing } from "./upstream-names.ts";

/** One of those that stand behind us: an upstream, or what the author registers by hand. */
export interface JoinedMember {
  /** Of an upstream; empty for the author's. */
  readonly name: string;
  readonly view: GuestView;
  /** What clients know something of it by; undefined for what they do not get. */
  publicName(kind: NamedKind, own: string): string | undefined;
}

interface JoinedOptions {
  readonly members: readonly JoinedMember[];
  /** What bears a name, by the table of names. */
  readonly find: (kind: NamedKind, name: string) => NamedThing | undefined;
  readonly owners: ResourceOwners;
  /** Some are not there yet: what they may have is declared ahead. */
  readonly isPartial: boolean;
  readonly clock: Clock;
}

/** Who does not say so within this is not listened to. */
const listenMs = 5_000;
/** What a server says of what it does not have; -32002 before 2026-07-28, and 0 in Python, of whatever went wrong. */
const unknownCodes: readonly number[] = [-32002, RpcCode.Params, RpcCode.Method, 0];
/** For what we look up ourselves. */
const ownEnvelope = toEnvelope(ownInfo, {});
const lateCapabilities = { prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true } };

/** Several servers as one client sees them: their lists in one, and each asked for what is its own. */
export class JoinedView implements GuestView {
  readonly #options: JoinedOptions;
  readonly #tools = new Kept<ReadonlyMap<string, Json>>();
  readonly #prompts = new Kept<ReadonlySet<string>>();

  constructor(options: JoinedOptions) {
    this.#options = options;
  }

  get tools(): ReadonlyMap<string, Json> {
    const of = this.#members.map(({ view }) => view.tools);
    const all = () =>
      this.#members.flatMap((member) => [...member.view.tools.values()].flatMap(toPublic("tool", member)));
    return this.#tools.for(of, () => new Map(all()));
  }

  get prompts(): ReadonlySet<string> {
    const of = this.#members.map(({ view }) => view.prompts);
    const all = () =>
      this.#members.flatMap(({ view, publicName }) =>
        [...view.prompts].flatMap((name) => publicName("prompt", name) ?? []),
      );
    return this.#prompts.for(of, () => new Set(all()));
  }

  capabilityOf(method: string): boolean {
    return this.#members.some(({ view }) => view.capabilityOf(method));
  }

  mergeCapabilities(ours: Json): Json {
    const { isPartial } = this.#options;
    const start = isPartial ? mergeFields(lateCapabilities, ours) : ours;
    return this.#members.reduce((merged, { view }) => view.mergeCapabilities(merged), start);
  }

  async request(method: string, params: Json, client?: GuestClient): Promise<Result> {
    const list = listFor(method);
    if (list !== undefined) {
      const read = ({ view }: JoinedMember) => readAll(view, list, { method, params, client });
      return { [list]: params.cursor === undefined ? await this.#list(list, method, read) : [] };
    }
    if (method === "tools/call") return await this.#askNamed("tool", { method, params }, client);
    if (method === "prompts/get") return await this.#askNamed("prompt", { method, params }, client);
    if (method === "resources/read") {
      const uri = textOf(params.uri) ?? "";
      const { members } = await this.whoHas(uri);
      return await this.askInTurn(members, (member) => this.#ask(member, method, params, client));
    }
    if (method === "completion/complete") return await this.#complete(params, client);
    return await this.askInTurn(this.#members, (member) => this.#ask(member, method, params, client));
  }

  async listen(wanted: Json, tell: (method: string, params: Json) => void, over: AbortSignal): Promise<Json> {
    // What is told of tools comes with the catalog, which has those of all.
    const { resourceSubscriptions, toolsListChanged: _ours, taskIds: _too, ...lists } = wanted;
    const uris = listOf(resourceSubscriptions).filter((uri) => typeof uri === "string");
    const owned = await Promise.all(uris.map(async (uri) => ({ uri, owners: await this.whoTellsOf(uri) })));
    const listening = this.#members.map(async (member) => {
      const own = owned.flatMap(({ uri, owners }) => (owners.includes(member) ? [uri] : []));
      const asked = { ...lists, ...(own.length > 0 && { resourceSubscriptions: own }) };
      if (Object.keys(asked).length === 0) return {};
      let isLate = false;
      const heard = member.view.listen(asked, (method, params) => isLate || tell(method, params), over);
      const late = () => {
        isLate = true;
        return {};
      };
      return await within(this.#options.clock, listenMs, heard, late).catch(late);
    });
    const honoured = await Promise.all(listening);
    const subscribed = honoured.flatMap((one) => listOf(one.resourceSubscriptions));
    return {
      ...Object.assign({}, ...honoured),
      ...(subscribed.length > 0 && { resourceSubscriptions: [...new Set(subscribed)] }),
    };
  }

  /** Those who may know a resource, best first: who lists it, who has named it, whose templates it fits, then all. */
  async whoHas(uri: string): Promise<{ readonly members: readonly JoinedMember[]; readonly isKnown: boolean }> {
    const all = this.#members.filter(({ view }) => view.capabilityOf("resources/read"));
    const listing = async (member: JoinedMember) => ({
      member,
      uris: await this.#valuesOf(member, "resources"),
      templates: await this.#valuesOf(member, "resourceTemplates"),
    });
    const listed = await Promise.all(all.map(listing));
    const owner = listed.find(({ uris, templates }) => uris.includes(uri) || templates.includes(uri));
    if (owner !== undefined) return { members: [owner.member], isKnown: true };
    const named = this.#options.owners.find(uri);
    const fitting = listed.filter(({ templates }) => templates.some((one) => couldMatch(one, uri)));
    const likely = [...all.filter(({ name }) => name === named), ...fitting.map(({ member }) => member)];
    return { members: [...new Set([...likely, ...all])], isKnown: likely.length > 0 };
  }

  /** Whom to ask for news of a resource: whose it is, or all, as any server may say yes to what it does not have. */
  async whoTellsOf(uri: string): Promise<readonly JoinedMember[]> {
    const { members, isKnown } = await this.whoHas(uri);
    return isKnown ? members.slice(0, 1) : members;
  }

  /** The answer of the first who knows what is asked; else what the first one said. */
  async askInTurn<T>(members: readonly JoinedMember[], ask: (member: JoinedMember) => Promise<T>): Promise<T> {
    let first: unknown;
    for (const member of members) {
      try {
        return await ask(member);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        // Who cannot be asked may have been the one; who has said no was not.
        const isNo = unknownCodes.includes(error.code);
        if (first === undefined || (!isNo && unknownCodes.includes((first as ProtocolError).code))) first = error;
        if (!isNo && error.code !== RpcCode.Internal) throw error;
      }
    }
    throw first ?? methodNotFound;
  }

  get #members(): readonly JoinedMember[] {
    return this.#options.members;
  }

  async #list(
    list: ListedName,
    method: string,
    read: (member: JoinedMember) => Promise<readonly Json[]>,
  ): Promise<readonly Json[]> {
    const lists = this.#members.map(async (member) => {
      const items = member.view.capabilityOf(method) ? await readOrNone(member, read) : [];
      const kind = list === "tools" ? "tool" : list === "prompts" ? "prompt" : undefined;
      return kind === undefined ? items : items.flatMap(toPublic(kind, member)).map(([, item]) => item);
    });
    const items = (await Promise.all(lists)).flat();
    return list === "resources" ? firstOfEach("uri", items) : items;
  }

  async #valuesOf({ view }: JoinedMember, list: "resources" | "resourceTemplates"): Promise<readonly string[]> {
    const [method, field] =
      list === "resources" ? ["resources/list", "uri"] : ["resources/templates/list", "uriTemplate"];
    const items = await readAll(view, list, { method, params: { _meta: ownEnvelope } }).catch(() => []);
    return items.flatMap((item) => textOf(item[field]) ?? []);
  }

  async #complete(params: Json, client: GuestClient | undefined): Promise<Result> {
    const method = "completion/complete";
    const ref = fieldsOf(params.ref);
    if (ref.type === "ref/prompt") {
      const { member, own } = this.#find("prompt", textOf(ref.name) ?? "");
      return await this.#ask(member, method, { ...params, ref: { ...ref, name: own } }, client);
    }
    const who = await this.whoHas(textOf(ref.uri) ?? "");
    const members = who.members.filter(({ view }) => view.capabilityOf(method));
    if (members.length === 0) throw badParams("There is nothing of that name to complete.");
    return await this.askInTurn(members, (member) => this.#ask(member, method, params, client));
  }

  async #askNamed(
    kind: NamedKind,
    { method, params }: { readonly method: string; readonly params: Json },
    client: GuestClient | undefined,
  ): Promise<Result> {
    const { member, own } = this.#find(kind, textOf(params.name) ?? "");
    return await this.#ask(member, method, { ...params, name: own }, client);
  }

  #find(kind: NamedKind, name: string): { readonly member: JoinedMember; readonly own: string } {
    const author = this.#members.find((member) => member.name === "");
    const authors = kind === "tool" ? author?.view.tools : author?.view.prompts;
    if (author !== undefined && authors?.has(name) === true) return { member: author, own: name };
    const found = this.#options.find(kind, name);
    const member = found === undefined ? undefined : this.#members.find((one) => one.name === found.upstream);
    if (found !== undefined && member !== undefined) return { member, own: found.own };
    throw badParams(`${kind === "tool" ? "Tool" : "Prompt"} ${excerptOf(name)} not found`);
  }

  async #ask({ name, view }: JoinedMember, method: string, params: Json, client?: GuestClient): Promise<Result> {
    const result = await view.request(method, params, client);
    this.#options.owners.note(name, result);
    return result;
  }
}

/** What was made of the lists of all, as long as they are the same. */
class Kept<T> {
  #of: readonly unknown[] | undefined;
  #made: T | undefined;

  for(of: readonly unknown[], make: () => T): T {
    if (this.#made === undefined || !of.every((list, at) => list === this.#of?.[at])) this.#made = make();
    this.#of = of;
    return this.#made;
  }
}

async function readAll(
  view: GuestView,
  list: ListedName,
  {
    method,
    params,
    client,
  }: { readonly method: string; readonly params: Json; readonly client?: GuestClient | undefined },
): Promise<readonly Json[]> {
  return await readAllPages(list, (cursor) =>
    view.request(method, cursor === undefined ? params : { ...params, cursor }, client),
  );
}

/** An upstream that cannot list takes nothing from what the others list. */
async function readOrNone(
  member: JoinedMember,
  read: (member: JoinedMember) => Promise<readonly Json[]>,
): Promise<readonly Json[]> {
  const items = read(member);
  return await (member.name === "" ? items : items.catch(() => []));
}

function toPublic(kind: NamedKind, { publicName }: JoinedMember): (item: Json) => (readonly [string, Json])[] {
  return (item) => {
    const name = publicName(kind, textOf(item.name) ?? "");
    return name === undefined ? [] : [[name, { ...item, name }]];
  };
}

function firstOfEach(field: string, items: readonly Json[]): readonly Json[] {
  const seen = new Set<unknown>();
  return items.filter((item) => !seen.has(item[field]) && seen.add(item[field]));
}

function mergeFields(theirs: Json, ours: Json): Json {
  const both = Object.entries(ours).map(([name, own]) => [name, { ...fieldsOf(theirs[name]), ...fieldsOf(own) }]);
  return { ...theirs, ...Object.fromEntries(both) };
}
