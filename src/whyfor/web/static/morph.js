// Makes what is shown like what was fetched, and touches nothing that is alike already. Elements with data-key keep their
// identity wherever they go: with it focus, selection, open folds.

export function morph(root, fresh) {
  const known = new Map([...root.querySelectorAll("[data-key]")].map((one) => [one.dataset.key, one]));
  const focused = root.contains(document.activeElement) ? document.activeElement : null;
  children(root, fresh, known);
  if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

function children(parent, fresh, known) {
  const spare = [...parent.childNodes].filter((one) => !one.dataset?.key);
  const wanted = [...fresh.childNodes].map((like) => [taken(like, spare, known), like]);
  arrange(parent, wanted.map(([node]) => node));
  for (const [node, like] of wanted) alike(node, like, known);
}

// The node that will show this: the one with its key, else one of its sort, else a new one.
function taken(like, spare, known) {
  if (like.dataset?.key) return known.get(like.dataset.key) ?? like.cloneNode(false);
  const at = spare.findIndex((one) => one.nodeName === like.nodeName);
  return at < 0 ? like.cloneNode(false) : spare.splice(at, 1)[0];
}

function arrange(parent, nodes) {
  const kept = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!kept.has(child)) child.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (at && node !== at && node === at.nextSibling) parent.append(at); // that one moves down; the others stay
    else if (node !== at) {
      parent.insertBefore(node, at);
      continue;
    }
    at = node.nextSibling;
  }
}

function alike(node, like, known) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.data !== like.data) node.data = like.data;
    return;
  }
  const own = (name) => name === "open" && node.nodeName === "DETAILS"; // whoever looks unfolds and folds
  for (const { name, value } of [...like.attributes]) {
    if (node.getAttribute(name) !== value && !own(name)) node.setAttribute(name, value);
  }
  for (const { name } of [...node.attributes]) if (!like.hasAttribute(name) && !own(name)) node.removeAttribute(name);
  children(node, like, known);
}
