import { toMinute } from "../../clock.ts";
import { clean } from "../terminal.ts";
import { toColumns } from "./layout.ts";

/** A key that expires within this time is listed with what is left of it: the day alone would not say much. */
const soonMinutes = 2_880;

interface ShownKey {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly commands: readonly string[];
  readonly createdAt: number;
  readonly expiresAt?: number | undefined;
  readonly usedAt?: number | undefined;
  readonly earlier?: { readonly until: number } | undefined;
}

/** API keys in columns, at a time of their store. */
export function keysTable(keys: readonly ShownKey[], now: number, width: number): string {
  const rows = keys.map((key) => [
    ...[clean(key.name), toDay(key.createdAt), toExpiry(key.expiresAt, now)],
    ...[key.usedAt === undefined ? "never" : toMinute(key.usedAt), termsOf(key, now)],
  ]);
  return toColumns([["Name", "Created", "Expires", "Last used", "Scopes"], ...rows], width);
}

/** What a key may do. Without patterns it may call every tool. */
function termsOf({ scopes, commands, earlier }: ShownKey, now: number): string {
  const parts = [
    scopes.join(", "),
    ...(commands.length === 0 ? [] : [`tools ${commands.join(", ")}`]),
    ...(earlier !== undefined && earlier.until > now ? [`secret before until ${toMinute(earlier.until)}`] : []),
  ];
  return parts.join("; ");
}

function toExpiry(expiresAt: number | undefined, now: number): string {
  if (expiresAt === undefined) return "never";
  if (expiresAt <= now) return `expired ${toDay(expiresAt)}`;
  const minutes = Math.ceil((expiresAt - now) / 60_000);
  if (minutes > soonMinutes) return toDay(expiresAt);
  return minutes < 120 ? `in ${minutes} min` : `in ${Math.floor(minutes / 60)} h`;
}

function toDay(ms: number): string {
  return toMinute(ms).slice(0, 10);
}
