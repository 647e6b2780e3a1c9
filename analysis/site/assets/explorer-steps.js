"use strict";

/** The steps of a trajectory: who acted, what was decided at which probability, what was asked, what was said. */
(() => {
  const { element, facts, percent, cost, count, many, inline, block, folded, address } = GMR.explorer;
  const GONE = "The log of this cell is not here, and with it went what was said.";

  function chosen(choice) {
    const among = choice.options > 1 ? `, one of ${choice.options}` : "";
    const drawn = choice.probability === null ? [`${among}, not drawn`] : [" ", percent(choice.probability), among];
    return element("span", { class: "chosen" }, inline(choice.choice), drawn);
  }

  function gate([open, probability], words) {
    const [opened, closed, opening] = words;
    const outcome = element("strong", { class: open ? "open" : "closed" }, open ? opened : closed);
    if (probability === null) return element("span", { class: "gate" }, outcome, ", without a draw");
    return element("span", { class: "gate" }, outcome, `; probability of ${opening} `, percent(probability));
  }

  function memory(retrieved) {
    if (!retrieved.length) return "empty";
    const records = retrieved.map(([number, ...drawn]) =>
      element("li", {}, `what step ${number} said: `, gate(drawn, ["seen", "left out", "being seen"]))
    );
    return element("ul", { class: "memory" }, records);
  }

  function prompt(messages, text) {
    const size = messages.reduce((sum, [, number]) => sum + text(number).length, 0);
    return folded(`Prompt: ${many(messages.length, "message")}, ${count(size)} characters`, () =>
      messages.map(([role, number]) => element("div", { class: "message" }, element("h6", {}, inline(role)), block(text(number))))
    );
  }

  function reply(call, text, isSimulated) {
    const mark = isSimulated ? element("span", { class: "made-up" }, "SIMULATED: this reply is made up") : null;
    if (call.error !== null) return [element("p", { class: "failure" }, "The call failed: ", inline(text(call.error)))];
    return [element("p", { class: "label" }, "Reply ", mark), block(text(call.reply))];
  }

  /** One use of a model. */
  function said(call, text, isSimulated) {
    const who = [call.role, call.backbone].filter((part) => part).flatMap((part, place) => [place ? " on " : "", inline(part)]);
    const spent = [`${count(call.prompt_tokens)} + ${count(call.completion_tokens)} tokens, cost `, cost(call.cost)];
    const cutOff = call.finish_reason === "length" ? ", cut off at the limit of tokens" : "";
    return element(
      "div",
      { class: "call" },
      element("h5", {}, inline(call.purpose.replaceAll("_", " ")), ": ", who),
      element("p", { class: "faint" }, spent, cutOff),
      ...(call.messages === null ? [element("p", { class: "faint" }, GONE)] : [prompt(call.messages, text), ...reply(call, text, isSimulated)])
    );
  }

  function decided(step) {
    return facts(
      ["role", step.role && chosen(step.role)],
      ["backbone", step.backbone && chosen(step.backbone)],
      ...step.choices.map((choice) => [inline(choice.slot ? `${choice.name} ${choice.slot}` : choice.name), chosen(choice)]),
      ["memory", step.written && memory(step.retrieved)]
    );
  }

  /**
   * One step.
   *
   * @param {Object} step
   * @param {function(number): string} text
   * @param {boolean} isSimulated
   * @param {boolean} isLinked whether addresses can name it: of two trajectories side by side, the steps of the first.
   */
  function stepOf(step, text, isSimulated, isLinked) {
    const title = step.number === 0 ? "Before the first step" : `Step ${step.number}`;
    const link = element("a", { href: address.changed({ step: String(step.number) }), "aria-label": `Link to step ${step.number}` }, "#");
    const ended = facts(
      ["contribution", step.written && gate(step.written, ["stored", "refused", "being stored"])],
      ["halting", step.halted && gate(step.halted, ["halted", "going on", "halting"])]
    );
    return element(
      "section",
      { class: "step", "data-step": isLinked ? String(step.number) : null },
      element("h4", { tabindex: "-1" }, title, isLinked ? [" ", link] : []),
      decided(step),
      step.calls.map((call) => said(call, text, isSimulated)),
      ended
    );
  }

  Object.assign(GMR.explorer, { said, stepOf });
})();
