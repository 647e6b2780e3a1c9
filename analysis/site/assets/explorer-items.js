"use strict";

/** The items of a cell, filtered, and compared with another cell of the same benchmark. */
(() => {
  const { element, inline, cost, count, many, verdict, facts, address, cells, cell, items } = GMR.explorer;
  const nameOf = (of) => `${of.title}, ${of.backbone}, seed ${of.seed}`;

  const SHOWN = {
    all: () => true,
    right: (item) => item.verdict === "right",
    wrong: (item) => item.verdict === "wrong",
    error: (item) => item.verdict === "error",
    "right-wrong": (item) => item.verdict === "right" && item.other && item.other !== "right",
    "wrong-right": (item) => item.verdict !== "right" && item.other === "right",
  };
  const COLUMNS = [
    ["id", "Item"],
    ["verdict", "Verdict"],
    ["other", "Beside"],
    ["status", "Status"],
    ["depth", "Depth"],
    ["calls", "Calls"],
    ["tokens", "Tokens"],
    ["cost", "Cost"],
    ["words", "Question"],
  ];
  // Of a long list the beginning is there at once, and the rest when it is wanted.
  const AT_ONCE = 100;
  const NUMBERS = new Set(["depth", "calls", "tokens", "cost"]);

  function compared(sort) {
    const column = sort.replace(/^-/, "");
    const sign = sort.startsWith("-") ? -1 : 1;
    const key = (item) => item[column] ?? "";
    if (NUMBERS.has(column)) return (a, b) => sign * (key(a) - key(b)) || a.place - b.place;
    return (a, b) => sign * key(a).localeCompare(key(b), "en", { numeric: true }) || a.place - b.place;
  }

  /**
   * The items that a place shows, in the order in which it shows them.
   *
   * @param {Object<string, string>} place
   * @returns {Promise<Array<Object>>} with the verdict of the cell beside under ``other``.
   */
  async function chosen(place) {
    const all = await items(await cell(place.cell));
    if (place.beside) {
      const others = new Map((await items(await cell(place.beside))).map((item) => [item.id, item.verdict]));
      for (const item of all) item.other = others.get(item.id);
    }
    const wanted = (place.find || "").toLowerCase();
    const test = SHOWN[place.show] || SHOWN.all;
    const found = all.filter((item) => test(item) && `${item.id} ${item.words}`.toLowerCase().includes(wanted));
    return place.sort ? found.sort(compared(place.sort)) : found;
  }

  function choice(label, name, options, value) {
    const made = options.map(([key, text]) => element("option", { value: key, selected: key === value }, text));
    const go = (event) => address.go({ [name]: event.target.value });
    return element("label", {}, `${label} `, element("select", { name, on: { change: go } }, made));
  }

  function kinds(isBeside) {
    const alone = [["", "all"], ["right", "right"], ["wrong", "wrong"], ["error", "error"]];
    return isBeside ? [...alone, ["right-wrong", "right here, not beside"], ["wrong-right", "right beside, not here"]] : alone;
  }

  /**
   * A choice of the cell to stand beside one.
   *
   * @param {Object} of the cell.
   * @param {string} [beside] name of the one chosen.
   */
  async function besides(of, beside) {
    const others = (await cells()).filter((one) => one.benchmark === of.benchmark && one.name !== of.name);
    return choice("Beside", "beside", [["", "none"], ...others.map((one) => [one.name, nameOf(one)])], beside || "");
  }

  function entry(name, item, place) {
    if (name === "id") {
      const link = element("a", { href: address.href({ ...place, item: item.id }), "data-item": item.id }, inline(item.id));
      return element("th", { scope: "row" }, link);
    }
    if (name === "words") return element("td", { class: "words" }, inline(item.words));
    if (name === "verdict" || name === "other") return element("td", {}, item[name] ? verdict(item[name]) : "–");
    const shown = name === "cost" ? cost(item.cost) : NUMBERS.has(name) ? count(item[name]) : item[name];
    return element("td", { class: NUMBERS.has(name) ? "number" : null }, shown);
  }

  function head(name, title, place) {
    const [ascending, descending] = [place.sort === name, place.sort === `-${name}`];
    const sort = () => address.go({ sort: ascending ? `-${name}` : descending ? "" : name });
    const arrow = ascending ? " ▲" : descending ? " ▼" : "";
    const state = ascending ? "ascending" : descending ? "descending" : null;
    return element("th", { scope: "col", "aria-sort": state }, element("button", { type: "button", class: "sort", on: { click: sort } }, title + arrow));
  }

  function table(found, place) {
    const columns = COLUMNS.filter(([name]) => name !== "other" || place.beside);
    const rows = (items) => items.map((item) => element("tr", {}, columns.map(([name]) => entry(name, item, place))));
    const body = element("tbody", {}, rows(found.slice(0, AT_ONCE)));
    const made = element(
      "table",
      { class: "items" },
      element("caption", {}, many(found.length, "item")),
      element("thead", {}, element("tr", {}, columns.map(([name, title]) => head(name, title, place)))),
      body
    );
    if (found.length <= AT_ONCE) return [made];
    const all = (event) => {
      body.append(...rows(found.slice(AT_ONCE)));
      event.target.remove();
    };
    return [made, element("button", { type: "button", class: "more", on: { click: all } }, `Show all ${many(found.length, "item")}`)];
  }

  /** The view of the items of a cell. */
  async function showItems(place) {
    const of = await cell(place.cell);
    const shown = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Items" });
    const fill = async () => {
      const now = address.here();
      shown.replaceChildren(...table(await chosen(now), now));
    };
    const find = (event) => {
      address.amend({ find: event.target.value });
      fill();
    };
    const input = element("input", { type: "search", name: "find", value: place.find || "", on: { input: find } });
    await fill();
    return [
      element("h2", { tabindex: "-1" }, nameOf(of), ` on ${of.benchmark_title}`),
      facts(
        ["right", `${of.right} of ${of.items}, ${((100 * of.right) / of.items).toFixed(1)} %`],
        ["notes", of.notes.length ? of.notes.join("; ") : null],
        ["tables", element("code", {}, of.folder)]
      ),
      element(
        "p",
        { class: "controls" },
        choice("Show", "show", kinds(place.beside), place.show || ""),
        await besides(of, place.beside),
        element("label", {}, "Id or first words ", input)
      ),
      element("p", { class: "faint keys" }, "Keys: ↓ and ↑ go through the items, Enter opens one, Esc leads back to all cells."),
      shown,
    ];
  }

  Object.assign(GMR.explorer, { nameOf, chosen, besides, showItems });
})();
