// Forms that a passkey signs: ask the server for a challenge, the device for an answer, then send the form.

function toBytes(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (char) => char.charCodeAt(0));
}

function toText(buffer) {
  const plain = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function read(options) {
  const known = (list) => (list ?? []).map((one) => ({ ...one, id: toBytes(one.id) }));
  const found = { ...options, challenge: toBytes(options.challenge) };
  if (options.user) found.user = { ...options.user, id: toBytes(options.user.id) };
  if (options.excludeCredentials) found.excludeCredentials = known(options.excludeCredentials);
  if (options.allowCredentials) found.allowCredentials = known(options.allowCredentials);
  return found;
}

function write(credential) {
  const response = { clientDataJSON: toText(credential.response.clientDataJSON) };
  for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = toText(credential.response[name]);
  }
  return JSON.stringify({ id: credential.id, rawId: toText(credential.rawId), type: credential.type, response });
}

async function sign(form) {
  const asked = await fetch(form.dataset.options, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  const answer = await asked.json();
  if (!asked.ok) throw new Error(`${answer.detail}. ${answer.hint ?? ""}`);
  const publicKey = read(answer);
  const made = form.dataset.passkey === "create";
  const credential = await (made ? navigator.credentials.create({ publicKey }) : navigator.credentials.get({ publicKey }));
  form.elements.credential.value = write(credential);
  form.submit();
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const place = document.querySelector("[data-passkey-error]");
    place.hidden = true;
    sign(form).catch((error) => {
      place.textContent = error.name === "NotAllowedError" ? "The passkey was not given. Try again." : error.message;
      place.hidden = false;
    });
  });
}
