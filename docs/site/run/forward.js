// Problems of the stages that compute attention: what decode.js and gradients.js have of theirs.
import { compared, drawn as drawnAs, inMemory, reference, valuesOf } from "./attention.js";
import { diagnosed } from "./diagnosis.js";
import { comparedSums, logSumExp } from "./sums.js";

export const drawn = ({ problem, inputs, seed }, { generators }) => drawnAs(problem, inputs, generators[seed]);

export const placed = inMemory;

// What O is compared with, and the rows' log-sum-exp, which is computed where it is asked for.
export function expected(p, inputs, bounds) {
  const values = valuesOf(p, inputs);
  let sums;
  return {
    O: reference(p, values, bounds),
    get sums() {
      return (sums ??= logSumExp(p, values, bounds));
    },
  };
}

// {passed, message, diagnosis} of O's bits, (B, Hq, Nq, d), and of the sums, where the stage has them.
export function judged(p, wanted, { O, log_sum_exp: sums }, bounds, { inputs, tile }) {
  const diagnosis = () => diagnosed(p, inputs, O, wanted.O, { bounds, ...tile });
  const comparison = compared(p, "O", O, wanted.O, bounds);
  if (!comparison.passed) return { ...comparison, diagnosis: diagnosis() };
  const more = sums ? comparedSums(p, sums, wanted.sums) : comparison;
  if (more.passed) return { ...comparison, diagnosis: "" };
  return { passed: false, message: `${comparison.message}; ${more.message}`, diagnosis: diagnosis() };
}
