/**
 * Names of files that hold keys, tokens or passwords. A list can never be whole; it keeps a model from what everybody
 * knows to look for. Copies that editors and careful people make (`server.key.bak`, `id_rsa~`) count as what they are
 * copies of.
 */
const copies = /(?:[~\s.]|\.(?:bak|old|orig|save|copy|\d+))+$/;
const keyEndings =
  /\.(?:pem|key|p8|p12|pfx|pkcs12|ppk|jks|keystore|keytab|kdb|kdbx|ovpn|agekey|env|keychain|keychain-db|tfstate)$/;
/** `prod.env.local`, and what cloud consoles and people call their downloads. */
const wordsInside = /\.env\.|(?:^|[-_.])(?:client[-_]?secret|service[-_]?account|private[-_]?key)(?:[-_.]|$)/;
const sshKeys = /^id_(?:rsa|dsa|ecdsa|ed25519|xmss)/;
const tokenFiles =
  /^(?:[a-z]+[-_])?(?:token|secret|credential|password|passphrase|api[-_]?key)s?(?:\.(?:json|ya?ml|toml|ini|cfg|conf|txt|csv|xml|db))?$/;
/** Of systems and browsers. */
const known = new Set([
  "_netrc",
  "authinfo",
  "cookies",
  "cookies.sqlite",
  "gshadow",
  "htpasswd",
  "key3.db",
  "key4.db",
  "kubeconfig",
  "login data",
  "logins.json",
  "shadow",
  "sudoers",
  "wallet.dat",
]);

/** True for the name of a file that holds a key, a token or a password. */
export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replace(copies, "");
  if (sshKeys.test(plain)) return !plain.endsWith(".pub");
  return keyEndings.test(plain) || tokenFiles.test(plain) || wordsInside.test(plain) || known.has(plain);
}
