/** Milliseconds of the model's time between which use is counted. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export declare class Events {
  now: number;
  after(ms: number, act: () => void): void;
  runUntil(end: number): void;
}

/** Numbers from 0 up to 1, the same for the same seed. */
export declare function randomOf(seed: number): () => number;

export declare class Servers {
  constructor(events: Events, count: number, span: Span);
  serve(ms: number, then?: () => void): void;
  delay(ms: number): void;
  get busy(): number;
}

export declare class GroupCommit {
  constructor(events: Events, ms: () => number, span: Span);
  commit(then: () => void): void;
  get busy(): number;
}

export declare class Slots {
  constructor(events: Events, count: number, span: Span);
  take(then: (release: () => void, hasWaited: boolean) => void): void;
  get busy(): number;
}
