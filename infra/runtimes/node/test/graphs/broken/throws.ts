const settings: any = undefined;

export const graph = settings.graph;
