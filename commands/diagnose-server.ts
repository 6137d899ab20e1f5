export { diagnoseServer as default } from "meanwhile/diagnose";
