// In place of SHARDSCOPE stands the address where Shardscope is served.
export default {
  title: "How we train our 7B model",
  url: "https://example.org",
  baseUrl: "/",
  scripts: [{ src: "SHARDSCOPE/embed.js", type: "module" }],
  presets: [["classic", { docs: { routeBasePath: "/", sidebarPath: undefined }, blog: false, theme: {} }]],
  themeConfig: { colorMode: { defaultMode: "light", respectPrefersColorScheme: false } },
};
