/** Names the isolated run that a process was started by; daemons are nobody's, whoever started them. */
export const runVariable = "MEANWHILE_RUN";
