/** What a `format` is completed from. */
interface Format {
  /** Familiar values; `today` is the day as 2026-07-28, `typed` what was typed so far. */
  readonly samples: (today: string, typed: string) => readonly string[];
  /**
   * A pattern of values that are surely valid, though not of all that are: continues what was typed, and vouches for
   * values made otherwise.
   */
  readonly shape: string;
}

const date = String.raw`\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])`;
const time = String.raw`([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`;
const label = "[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?";
const hostname = String.raw`(${label})(\.${label})*`;
const byte = String.raw`(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
const pointer = "(/([a-zA-Z0-9_-]|~[01])*)*";
const urls = ["https://example.com/", "https://example.org/path", "http://localhost:8080/"];
const uri = String.raw`^[a-z][a-z0-9+.-]*://(${hostname})(:[1-9]\d{0,3})?(/[A-Za-z0-9._~/-]*(\?[A-Za-z0-9=&._~-]*)?(#[A-Za-z0-9._~-]*)?)?$`;

const email: Format = {
  samples: (_today, typed) => {
    const [name = ""] = typed.split("@");
    return ["example.com", "example.org", "example.net"].map((host) => `${name === "" ? "name" : name}@${host}`);
  },
  shape: String.raw`^[a-z0-9]+([._+-][a-z0-9]+)*@(${label}\.)+[a-z]{2,12}$`,
};
const host: Format = { samples: () => ["localhost", "example.com", "www.example.com"], shape: `^${hostname}$` };
const url: Format = { samples: () => urls, shape: uri };

const formats: Readonly<Record<string, Format>> = {
  date: { samples: (today) => [today, "2026-01-01", "2026-12-31"], shape: `^${date}$` },
  time: { samples: () => ["00:00:00Z", "12:00:00Z", "23:59:59Z"], shape: `^${time}$` },
  "date-time": {
    samples: (today) => [`${today}T00:00:00Z`, "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z"],
    shape: `^${date}T${time}$`,
  },
  duration: {
    samples: () => ["PT1M", "PT1H", "P1D", "P1W"],
    shape: String.raw`^P([1-9]\d{0,3}[DWMY]|T[1-9]\d{0,3}[HMS])$`,
  },
  email,
  "idn-email": email,
  hostname: host,
  "idn-hostname": host,
  ipv4: { samples: () => ["127.0.0.1", "0.0.0.0", "192.168.0.1"], shape: String.raw`^${byte}(\.${byte}){3}$` },
  ipv6: { samples: () => ["::1", "::", "2001:db8::1"], shape: "^([1-9a-f][0-9a-f]{0,3}:){7}[0-9a-f]{1,4}$" },
  uri: url,
  url,
  iri: url,
  "uri-reference": { samples: () => [...urls, "/path"], shape: "^(/[A-Za-z0-9._~-]+)+$" },
  "iri-reference": { samples: () => [...urls, "/path"], shape: "^(/[A-Za-z0-9._~-]+)+$" },
  "uri-template": {
    samples: () => ["https://example.com/{id}", "/items/{id}", "/items{?page}"],
    shape: String.raw`^(/[A-Za-z0-9._~-]+)+/\{[a-z]+\}$`,
  },
  uuid: {
    samples: () => [
      "00000000-0000-4000-8000-000000000000",
      "00000000-0000-4000-8000-000000000001",
      "00000000-0000-4000-8000-000000000002",
    ],
    shape: "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
  },
  "json-pointer": { samples: () => ["/name", "/items/0", "/a/b"], shape: `^${pointer}$` },
  "relative-json-pointer": { samples: () => ["0/name", "1/name", "0#"], shape: `^(0|[1-9]\\d{0,2})(#|${pointer})$` },
  regex: { samples: () => ["^[a-z]+$", "^\\d+$", ".*"], shape: "^[a-z0-9]+$" },
};

/** The format of that name, if it is one we know. */
export function findFormat(name: unknown): Format | undefined {
  return typeof name === "string" && Object.hasOwn(formats, name) ? formats[name] : undefined;
}
