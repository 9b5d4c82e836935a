// Builds src/ into ../src/tocsin/web/pages/static: file names that change with their content, a manifest that the server
// reads, and a compressed copy beside each file.
import { build } from "esbuild";
import subsetFont from "subset-font";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "tocsin", "web", "pages", "static");
const entries = ["main.js", "theme.js", "editor.js", "reference.js", "main.css"];

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const hashed = (name, bytes) => name.replace(".", `-${createHash("sha256").update(bytes).digest("hex").slice(0, 8)}.`);

// The font's letters that the pages' own words need, in the weights that the styles use: half of its Latin subset. Others come
// from the system's font.
const LETTERS = String.fromCharCode(...Array.from({ length: 95 }, (_, at) => 32 + at)) + "\u00a0\u202f…–—‘’“”·×≥≤→←↑↓°µ±§äöüÄÖÜßéèàçñ";
const font = await subsetFont(readFileSync(join(here, "node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2")), LETTERS, { targetFormat: "woff2", variationAxes: { wght: { min: 400, max: 600 } } });
const fontName = hashed("inter.woff2", font);
writeFileSync(join(out, fontName), font);
const withFont = { name: "font", setup: ({ onResolve }) => onResolve({ filter: /^inter\.woff2$/ }, () => ({ path: `./${fontName}`, external: true })) };

const shared = { absWorkingDir: here, bundle: true, minify: true, metafile: true, outdir: out, target: "es2022", entryNames: "[name]-[hash]", logLevel: "warning", plugins: [withFont] };
const results = await Promise.all([
  build({ ...shared, entryPoints: ["main.js", "editor.js", "reference.js", "main.css"].map((name) => `src/${name}`), format: "esm", splitting: true, chunkNames: "part-[hash]" }),
  // Runs before the first paint, so it is no module.
  build({ ...shared, entryPoints: ["src/theme.js"], format: "iife" }),
]);

const manifest = { "inter.woff2": fontName };
for (const { metafile } of results) {
  for (const [path, made] of Object.entries(metafile.outputs)) {
    const name = basename(path);
    if (made.entryPoint) manifest[basename(made.entryPoint)] = name;
    // Styles that a script imports come out as a file of their own beside it.
    if (made.cssBundle) manifest[`${basename(made.entryPoint, ".js")}.css`] = basename(made.cssBundle);
  }
}
const icon = readFileSync(join(here, "src", "icon.svg"));
manifest["icon.svg"] = hashed("icon.svg", icon);
writeFileSync(join(out, manifest["icon.svg"]), icon);

const sizes = [];
const names = new Set([...Object.values(manifest), ...results.flatMap(({ metafile }) => Object.keys(metafile.outputs).map((path) => basename(path)))]);
for (const name of names) {
  const plain = readFileSync(join(out, name));
  // A font is compressed already.
  if (name === fontName) { sizes.push([name, plain.length, plain.length]); continue; }
  const packed = gzipSync(plain, { level: 9 });
  writeFileSync(join(out, `${name}.gz`), packed);
  sizes.push([name, plain.length, packed.length]);
}
for (const name of entries) if (!manifest[name]) throw new Error(`${name} was not built`);
// Last, so that a build that broke off counts as none.
writeFileSync(join(out, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n");
for (const [name, plain, packed] of sizes) console.log(`${name.padEnd(28)} ${(plain / 1024).toFixed(1).padStart(7)} KB  ${(packed / 1024).toFixed(1).padStart(6)} KB gzip`);
