// Kept-alive connections on bare sockets, one request at a time on each. Node's own HTTP client takes more processor
// time for a call than most of the servers that are measured with it, and many calls a second would be its number, not
// theirs.
import net from "node:net";

const lineEnd = "\r\n";
const headEnd = "\r\n\r\n";
const lastChunk = "\r\n0\r\n\r\n";

/** As many connections to one address as there are requests at the same time. */
export class HttpLanes {
  #url;
  #all = [];
  #free = [];

  constructor(url) {
    this.#url = new URL(url);
  }

  /** Gives the status, a function for headers, and the body. */
  async post(body, headers) {
    const { host, pathname } = this.#url;
    const all = { host, ...headers, "content-length": Buffer.byteLength(body) };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}${lineEnd}`);
    const lane = this.#free.pop() ?? this.#open();
    const answer = await lane.send(`POST ${pathname} HTTP/1.1${lineEnd}${lines.join("")}${lineEnd}${body}`);
    this.#free.push(lane);
    return answer;
  }

  close() {
    for (const lane of this.#all) lane.close();
  }

  #open() {
    const lane = new Lane(this.#url);
    this.#all.push(lane);
    return lane;
  }
}

class Lane {
  #url;
  #socket;
  #unread = "";
  #waiting;

  constructor(url) {
    this.#url = url;
  }

  send(text) {
    return new Promise((resolve, reject) => {
      const isReused = this.#socket !== undefined;
      this.#socket ??= this.#connect();
      // A server may close a kept-alive connection at the very moment it is used again.
      this.#waiting = { resolve, reject: isReused ? () => this.send(text).then(resolve, reject) : reject };
      this.#socket.write(text);
    });
  }

  close() {
    this.#socket?.destroy();
  }

  #connect() {
    const socket = net.connect({ host: this.#url.hostname, port: Number(this.#url.port), noDelay: true });
    // One character a byte, so that lengths are bytes.
    socket.setEncoding("latin1").on("data", (text) => this.#read(text));
    socket.on("error", () => {});
    socket.on("close", () => this.#lose());
    return socket;
  }

  #lose() {
    const waiting = this.#waiting;
    this.#socket = undefined;
    this.#waiting = undefined;
    this.#unread = "";
    waiting?.reject(new Error(`${this.#url.href} closed the connection without an answer`));
  }

  #read(text) {
    this.#unread += text;
    const answer = readAnswer(this.#unread);
    if (answer === undefined) return;
    const { resolve } = this.#waiting;
    this.#waiting = undefined;
    this.#unread = "";
    resolve(answer);
  }
}

/** The answer in a text, once it is all there. */
function readAnswer(text) {
  const headLength = text.indexOf(headEnd);
  if (headLength === -1) return undefined;
  const head = text.slice(0, headLength);
  const header = (name) => new RegExp(`^${name}: *(.*?)\r?$`, "im").exec(head)?.[1];
  const length = header("content-length");
  const rest = text.slice(headLength + headEnd.length);
  const isWhole = length === undefined ? text.endsWith(lastChunk) : rest.length >= Number(length);
  if (!isWhole) return undefined;
  const body = Buffer.from(length === undefined ? joinChunks(rest) : rest, "latin1");
  return { status: Number(head.slice(9, 12)), header, body };
}

function joinChunks(text) {
  let joined = "";
  for (let at = 0; ; ) {
    const begin = text.indexOf(lineEnd, at) + lineEnd.length;
    const size = Number.parseInt(text.slice(at, begin), 16);
    if (!(size > 0)) return joined;
    joined += text.slice(begin, begin + size);
    at = begin + size + lineEnd.length;
  }
}
