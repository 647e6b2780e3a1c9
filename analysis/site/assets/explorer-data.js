"use strict";

/** What the explorer loads: cells, their items, and trajectories with their texts. */
(() => {
  const load = (name) => GMR.load(`explorer/${name}`);
  const cells = () => load("cells");

  /** The cell of a name as addresses have it. */
  async function cell(name) {
    const found = (await cells()).find((one) => one.name === name);
    if (!found) throw new Error(`There is no cell ${name} here. Go back to all cells and choose one.`);
    return found;
  }

  /**
   * The items of a cell, one object each, in the order of the test.
   *
   * @returns {Promise<Array<Object>>}
   */
  async function items(of) {
    const [columns, [ids, words]] = await Promise.all([load(`${of.name}/items`), load(`questions/${of.benchmark}`)]);
    const said = new Map(ids.map((id, place) => [id, words[place]]));
    return columns.id.map((id, place) => {
      const fields = Object.entries(columns).map(([name, values]) => [name, values[place]]);
      return { ...Object.fromEntries(fields), place, words: said.get(id) };
    });
  }

  /**
   * One trajectory; its method ``text`` gives the text of a number.
   *
   * @returns {Promise<Object>}
   */
  async function record(of, id) {
    const item = (await items(of)).find((one) => one.id === id);
    if (!item) throw new Error(`${of.name} has no item ${id}. Go back to its items and choose one.`);
    const { paragraphs, texts, records } = await load(`${of.name}/${item.chunk}`);
    const text = (number) => texts[number].map((part) => paragraphs[part]).join("\n\n");
    return { ...records.find((one) => one.id === id), text };
  }

  Object.assign(GMR.explorer, { cells, cell, items, record });
})();
