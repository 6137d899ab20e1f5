/** Callers who cannot be told apart must not be given each other's runs. */
export const anonymous = "anonymous";
