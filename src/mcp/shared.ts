/** What servers on one store have in common, for doors. */
export {
  endedLetter,
  type KeptSession,
  type Letter,
  type NewSession,
  type SessionNotes,
  type SharedSessions,
  streamNote,
} from "../task/shared-state.ts";
