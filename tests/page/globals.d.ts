// What the page's scripts find beside their modules: Observable Plot, embedded as a library.
declare const Plot: any;
