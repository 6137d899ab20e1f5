/** What a command may return beside plain data: text, pictures, sound, resources and links, in the order given. */
export type ContentBlock =
  | { readonly type: "text"; readonly text: string; readonly annotations?: ContentAnnotations }
  | {
      readonly type: "image";
      readonly data: string;
      readonly mimeType: string;
      readonly annotations?: ContentAnnotations;
    }
  | {
      readonly type: "audio";
      readonly data: string;
      readonly mimeType: string;
      readonly annotations?: ContentAnnotations;
    }
  | { readonly type: "resource"; readonly resource: ResourceBody; readonly annotations?: ContentAnnotations }
  | {
      readonly type: "resource_link";
      readonly uri: string;
      readonly name: string;
      readonly title?: string;
      readonly description?: string;
      readonly mimeType?: string;
    };

interface ContentAnnotations {
  readonly audience?: readonly ("user" | "assistant")[];
  readonly priority?: number;
  readonly lastModified?: string;
}

export type ResourceBody = { readonly uri: string; readonly mimeType?: string } & (
  | { readonly text: string }
  | { readonly blob: string }
);

const brand = Symbol.for("meanwhile.content");

/** Rich content made by `content(…)`; a command returns it instead of data. */
export interface Content {
  readonly blocks: readonly ContentBlock[];
}

/** Answers with content blocks, in this order. Plain strings are text. */
export function content(...blocks: readonly (ContentBlock | string)[]): Content {
  const made = { blocks: blocks.map((block) => (typeof block === "string" ? text(block) : block)) };
  return Object.defineProperty(made, brand, { value: true });
}

export function text(value: string): ContentBlock {
  return { type: "text", text: value };
}

/** A picture, from bytes or base64 text. */
export function image(data: Uint8Array | string, mimeType: string): ContentBlock {
  return { type: "image", data: toBase64(data), mimeType };
}

/** A sound, from bytes or base64 text. */
export function audio(data: Uint8Array | string, mimeType: string): ContentBlock {
  return { type: "audio", data: toBase64(data), mimeType };
}

/** A resource with its body inside the answer. */
export function resource(body: ResourceBody): ContentBlock {
  return { type: "resource", resource: body };
}

/** A pointer to a resource the client may read by itself. */
export function link(
  uri: string,
  name: string,
  more: { title?: string; description?: string; mimeType?: string } = {},
): ContentBlock {
  return { type: "resource_link", uri, name, ...more };
}

/** True for what `content(…)` made, whichever copy of the package made it. */
export function isContent(value: unknown): value is Content {
  return typeof value === "object" && value !== null && brand in value;
}

const needs: Record<string, readonly string[]> = {
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource_link: ["uri", "name"],
};

/** What is wrong with a list of blocks, if anything. */
export function contentProblem(blocks: readonly unknown[]): string | undefined {
  for (const [at, block] of blocks.entries()) {
    const fields = (typeof block === "object" && block !== null ? block : {}) as Record<string, unknown>;
    if (fields.type === "resource" && typeof fields.resource === "object" && fields.resource !== null) continue;
    const needed = Object.hasOwn(needs, String(fields.type)) ? needs[String(fields.type)] : undefined;
    if (needed === undefined)
      return `block ${at + 1} of no known type; text, image, audio, resource and link make them`;
    const missing = needed.find((name) => typeof fields[name] !== "string");
    if (missing !== undefined) return `block ${at + 1}, of type ${String(fields.type)}, without \`${missing}\``;
  }
  return undefined;
}

function toBase64(data: Uint8Array | string): string {
  return typeof data === "string"
    ? data
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}
