/** The reason to abort with when the work shall go on without its caller. */
export class Detach extends Error {
  override readonly name = "Detach";
  constructor() {
    super("Left alone; it goes on without us.");
  }
}
