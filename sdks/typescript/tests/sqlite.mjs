/** SQLite for tests: that of the platform where it has one, else compiled to WebAssembly, in the form of node:sqlite. */

import sqlite3 from "node-sqlite3-wasm";

export function openDatabase(path) {
  const database = new sqlite3.Database(path);
  return {
    exec: (statement) => database.exec(statement),
    prepare: (statement) => ({
      all: (...parameters) => database.all(statement, parameters),
      run: (...parameters) => database.run(statement, parameters),
    }),
    close: () => database.close(),
  };
}
