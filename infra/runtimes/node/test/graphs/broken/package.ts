import { nothing } from "no-such-package";

export const graph = nothing;
