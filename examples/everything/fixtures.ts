/** A red pixel. */
export const pixelPng =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/** One sample of silence. */
export const silenceWav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

export const embeddedResource = {
  uri: "test://embedded-resource",
  mimeType: "text/plain",
  text: "This is an embedded resource content.",
};

export const mixedContentResource = {
  uri: "test://mixed-content-resource",
  mimeType: "application/json",
  text: '{"test":"data","value":123}',
};
