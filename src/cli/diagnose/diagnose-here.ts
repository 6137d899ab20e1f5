import { systemClock } from "../../clock.ts";
import type { Report } from "../../diagnose/report/report.ts";
import { runDiagnosis } from "../../diagnose/run-diagnosis.ts";
import { Cancelled, Exit } from "../../errors.ts";
import { homeAt } from "../../paths.ts";
import { packageVersion } from "../../project/project.ts";
import { ProgressTrack } from "../../task/progress.ts";
import { StageView } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import type { TypedDiagnosis } from "./read-diagnosis.ts";

/** In this terminal, with a bar. */
export async function diagnoseHere(
  typed: TypedDiagnosis,
  { terminal, context }: Pick<TypedVerb, "terminal" | "context">,
): Promise<Report> {
  const stop = new AbortController();
  const stopListening = terminal.onInterrupt(() => {
    if (stop.signal.aborted) terminal.leave(Exit.Cancelled);
    else stop.abort(new Cancelled("Cancelled."));
  });
  const view = typed.isQuiet ? undefined : new StageView(terminal, { clock: systemClock });
  const track = new ProgressTrack({ clock: systemClock, deliver: (update) => view?.progress(update) });
  try {
    return await runDiagnosis({
      ...typed,
      signal: stop.signal,
      version: packageVersion(),
      privateFolder: homeAt(context.env).folder,
      onStep: ({ done, total, suite, question }) => {
        const message = suite === undefined ? question : `${suite}: ${question}`;
        // Of the first few nobody could say how long the others take.
        track.report(done * 10 < total || total === 0 ? { message } : { done, total, message });
      },
    });
  } finally {
    track.finish();
    view?.end();
    stopListening();
  }
}
