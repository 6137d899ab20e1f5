const sentences: Readonly<Record<string, string>> = {
  ENOENT: "it vanished while it was looked at",
  ENOTDIR: "a folder on the way vanished",
  EACCES: "it may not be read; check its mode and owner",
  EPERM: "it may not be read; check its mode and owner",
  ELOOP: "its links lead in a circle",
  EIO: "reading it failed; check the disk",
  ENOSPC: "the disk is full",
  EMFILE: "too many files are open; try again",
  ENAMETOOLONG: "its path is too long",
  EISDIR: "it is a folder",
  ESTALE: "it vanished while it was looked at",
};

/** A failure of the file system in words. */
export function reasonOf(error: unknown): string {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return (
    (typeof code === "string" ? sentences[code] : undefined) ?? (typeof message === "string" ? message : String(error))
  );
}
