import { describe, expect, test } from "vitest";
import { EventReader, type ServerEvent, toEventText } from "../../src/wire/sse.ts";

describe("a stream of events", () => {
  const events = (...chunks: (string | Buffer)[]) => {
    const reader = new EventReader();
    return chunks.flatMap((chunk) => [...reader.push(Buffer.from(chunk))]);
  };

  test("is cut at empty lines, whatever ends its lines", () => {
    for (const end of ["\n", "\r\n"]) {
      expect(
        events(`event: message${end}id: 7${end}data: {"a":1}${end}${end}data: b${end}${end}`).map(({ data, id }) => [
          data,
          id,
        ]),
      ).toEqual([
        ['{"a":1}', "7"],
        ["b", undefined],
      ]);
    }
  });

  test("may come byte by byte, in the middle of a letter too", () => {
    const bytes = Buffer.from("data: grüße\n\n");
    expect(events(...Array.from(bytes, (byte) => Buffer.from([byte]))).map(({ data }) => data)).toEqual(["grüße"]);
  });

  test("may hold comments, data on several lines, and how long to wait", () => {
    expect(events(": ping\n\nretry: 250\nid: 1\ndata:\n\ndata: a\ndata: b\n\n")).toEqual([
      { data: "", id: "1", retryMs: 250 },
      { data: "a\nb", id: undefined, retryMs: undefined },
    ]);
  });

  test("says when an event has grown larger than anybody reads, and a small one after a large one is none", () => {
    const reader = new EventReader(1_000);
    expect(reader.push(Buffer.from(`data: ${"x".repeat(900)}`))).toEqual([]);
    expect(reader.isTooLarge).toBe(false);
    expect(reader.push(Buffer.from(`\n\ndata: ${"y".repeat(900)}`))).toMatchObject([{ data: "x".repeat(900) }]);
    expect(reader.isTooLarge).toBe(false);
    expect(reader.push(Buffer.from("y".repeat(200)))).toEqual([]);
    expect(reader.isTooLarge).toBe(true);
  });

  test("counts bytes: letters that take several make an event too large that has few of them", () => {
    const reader = new EventReader(1_000);
    expect(reader.push(Buffer.from(`data: ${"ü".repeat(490)}\n\n`))).toMatchObject([{ data: "ü".repeat(490) }]);
    expect(reader.isTooLarge).toBe(false);
    reader.push(Buffer.from(`data: ${"ü".repeat(510)}\n\n`));
    expect(reader.isTooLarge).toBe(true);
  });

  test("may begin with a byte order mark, and say its id alone", () => {
    expect(events("\ufeffdata: a\n\nid: 8\n\n")).toEqual([
      { data: "a", id: undefined, retryMs: undefined },
      { data: "", id: "8", retryMs: undefined },
    ]);
  });

  test("events are cut alike, wherever the stream is cut", () => {
    const stream = Buffer.from(
      "event: x\r\ndata: one\r\ndata:two ü\r\n\r\n: comment\rdata: three\r\rdata: four\n\ndata: unfinished",
    );
    for (const size of [1, 2, 3, 7, stream.length]) {
      const reader = new EventReader();
      const events: ServerEvent[] = [];
      for (let at = 0; at < stream.length; at += size) events.push(...reader.push(stream.subarray(at, at + size)));
      expect(events.map(({ data }) => data)).toEqual(["one\ntwo ü", "three", "four"]);
    }
  });

  test("is written so that it is read again", () => {
    const reader = new EventReader();
    const text = toEventText('{"a":"ü"}', "3.x") + toEventText("{}");
    expect(reader.push(Buffer.from(text))).toEqual([
      { data: '{"a":"ü"}', id: "3.x", retryMs: undefined },
      { data: "{}", id: undefined, retryMs: undefined },
    ]);
  });
});
