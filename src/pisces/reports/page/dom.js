// Builders of page elements. Text from run folders reaches the page as text nodes only, never as markup.

/** The element of an id, of whichever kind. @param {string} id @returns {any} */
export function byId(id) { return document.getElementById(id); }

/** All elements of a selector, of whichever kind. @param {string} selector @returns {any[]} */
export function allOf(selector) { return [...document.querySelectorAll(selector)]; }

/**
 * Sets attributes and appends children; functions become event listeners, false, null and undefined are left out.
 * @template {Element} T
 * @param {T} node
 * @param {Object<string, any>} attributes
 * @param {any[]} children
 * @returns {T}
 */
export function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : document.createTextNode(String(child))));
  return node;
}

/** @param {string} tag @param {Object<string, any>} attributes @param {...any} children @returns {any} */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** @param {string} tag @param {Object<string, any>} attributes @param {...any} children */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Fills a select element. @param {Element} select @param {[any, string][]} entries @param {any} chosen */
export function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) =>
    element("option", { value, selected: String(value) === String(chosen) }, text)));
}

/** @param {string} text @param {Element} control */
export function labeled(text, control) { return element("label", {}, text, control); }

/** A dot in a color, for legends and names. @param {string} color */
export function swatch(color) {
  const mark = element("span", { class: "swatch", "aria-hidden": "true" });
  mark.style.background = color;
  return mark;
}

/** Offers a file for download. @param {string} name @param {string} address */
export function download(name, address) {
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

/** Copies text and says so on the button. @param {string} text @param {HTMLElement} button */
export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages that open from disk may have no clipboard; the selection always has one.
    const area = element("textarea", {});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1200);
}
