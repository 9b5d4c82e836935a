// Renders the server's OpenAPI document. Strings are set as text only, never as HTML.

// Before the contents come in, which would push the description down.
document.getElementById("operations").open = !matchMedia("(max-width: 719px)").matches;

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Bold text and code in a description, as elements.
function inline(text) {
  return text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).map((part) => {
    if (part.startsWith("**")) return element("strong", { textContent: part.slice(2, -2) });
    return part.startsWith("`") ? element("code", { textContent: part.slice(1, -1) }) : part;
  });
}

function resolver(description) {
  return function resolve(schema) {
    if (!schema || !schema.$ref) return schema || {};
    const path = schema.$ref.replace(/^#\//, "").split("/");
    return path.reduce((part, key) => part[key], description);
  };
}

function refName(schema) {
  return schema.$ref ? schema.$ref.split("/").pop() : "";
}

// A few words for the type of a value; structs are named, and their fields shown by `structs`.
function typeOf(schema) {
  if (schema.$ref) return refName(schema);
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(" or ");
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.type === "array") return `list of ${typeOf(schema.items || {})}`;
  if (schema.type === "object") return "object";
  return schema.type || "any JSON";
}

const RULES = {
  minimum: "at least", maximum: "at most", minLength: "min. length", maxLength: "max. length", maxItems: "max. items",
  maxProperties: "max. fields", format: "format", pattern: "pattern", default: "default",
};

function rulesOf(schema) {
  const parts = [schema, ...(schema.anyOf || [])];
  const rules = parts.flatMap((part) => Object.entries(RULES)
    .filter(([key]) => part[key] !== undefined)
    .map(([key, words]) => `${words} ${part[key]}`));
  return rules.join(" · ");
}

function heads(...texts) {
  return texts.map((textContent) => element("th", { scope: "col", textContent }));
}

// A single word stays whole; a choice of several may break between them.
function typeCell(schema) {
  const text = typeOf(schema);
  return element("td", { className: text.includes(" ") ? "" : "whole-word" }, element("code", { textContent: text }));
}

function fieldTable(struct) {
  const rows = Object.entries(struct.properties || {}).map(([name, field]) => {
    const label = element("td", {}, element("code", { textContent: name }));
    if ((struct.required || []).includes(name)) {
      label.append(element("span", { className: "need", textContent: "required" }));
    }
    return element("tr", {}, label,
      typeCell(field),
      element("td", {}, ...inline(field.description || ""),
        element("span", { className: "rule", textContent: rulesOf(field) })));
  });
  if (!rows.length) return element("p", { textContent: "No fields." });
  const head = element("tr", {}, ...heads("Field", "Type", "Meaning"));
  return element("table", { className: "plain-table" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

function parameterTable(parameters) {
  const rows = parameters.map((parameter) => {
    const label = element("td", {}, element("code", { textContent: parameter.name }));
    if (parameter.required) label.append(element("span", { className: "need", textContent: "required" }));
    const rules = [parameter.schema, parameter.schema.items || {}].map(rulesOf).filter(Boolean).join(" · ");
    return element("tr", {}, label,
      element("td", { textContent: parameter.in }),
      typeCell(parameter.schema),
      element("td", {}, ...inline(parameter.description || ""),
        element("span", { className: "rule", textContent: rules })));
  });
  const head = element("tr", {}, ...heads("Parameter", "In", "Type", "Meaning"));
  return element("table", { className: "plain-table" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

// The path with the examples of its parameters in their places.
function examplePath(path, parameters) {
  return parameters.filter((parameter) => parameter.in === "path").reduce(
    (filled, { name, example }) => filled.replace(`{${name}}`, encodeURIComponent(example || name)), path);
}

function curl(method, path, body) {
  const base = `curl ${location.origin}${path}`;
  if (!body) return method === "GET" ? base : `${base} -X ${method}`;
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `${base} \\\n  -H 'content-type: application/json' \\\n  -d '${json}'`;
}

function responseTable(responses) {
  const rows = Object.entries(responses).map(([status, response]) => {
    const [mediaType, content] = Object.entries(response.content || {})[0] || ["", {}];
    const shown = content.schema && content.schema.$ref
      ? element("a", { href: `#schema-${refName(content.schema)}`, textContent: refName(content.schema) })
      : element("span", { textContent: mediaType || "none" });
    return element("tr", {}, element("td", {}, element("code", { textContent: status })),
      element("td", {}, ...inline(response.description)), element("td", {}, shown));
  });
  const head = element("tr", {}, ...heads("Status", "When", "Body"));
  return element("table", { className: "plain-table" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

function operationSection(path, method, operation, resolve) {
  const section = element("section", { id: operation.operationId, className: "card" },
    element("h2", { textContent: operation.summary }),
    element("p", { className: "row" }, element("span", { className: "method", textContent: method }),
      element("code", { className: "break", textContent: path })),
    element("p", {}, ...inline(operation.description)));
  const parameters = operation.parameters || [];
  if (parameters.length) section.append(element("h3", { textContent: "Parameters" }), parameterTable(parameters));
  const content = operation.requestBody && operation.requestBody.content["application/json"];
  if (content) section.append(element("h3", { textContent: "Body" }), fieldTable(resolve(content.schema)));
  const example = curl(method, examplePath(path, parameters), content && content.example);
  section.append(
    element("h3", { textContent: "Example" }), element("div", { className: "code" }, element("pre", { tabIndex: 0 }, element("code", { textContent: example }))),
    element("h3", { textContent: "Responses" }), responseTable(operation.responses));
  return section;
}

function schemaSection(name, schema) {
  const shown = schema.enum ? element("p", {}, element("code", { textContent: typeOf(schema) })) : fieldTable(schema);
  return element("section", { id: `schema-${name}`, className: "card" }, element("h2", { textContent: name }),
    element("p", {}, ...inline(schema.description || "")), shown);
}

function link(href, textContent) {
  return element("a", { href, textContent });
}

function render(description) {
  const resolve = resolver(description);
  const contents = document.getElementById("contents");
  const main = document.getElementById("description");
  main.replaceChildren(...description.info.description.split("\n\n").map((part) => element("p", {}, ...inline(part))));
  for (const tag of description.tags) {
    contents.append(element("h3", { textContent: tag.name }));
    for (const [path, methods] of Object.entries(description.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        if (!operation.tags.includes(tag.name)) continue;
        contents.append(link(`#${operation.operationId}`, operation.summary));
        main.append(operationSection(path, method.toUpperCase(), operation, resolve));
      }
    }
  }
  contents.append(element("h3", { textContent: "Types" }));
  for (const [name, schema] of Object.entries(description.components.schemas)) {
    contents.append(link(`#schema-${name}`, name));
    main.append(schemaSection(name, schema));
  }
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

const place = document.getElementById("description");
try {
  const answer = await fetch(place.dataset.document);
  if (!answer.ok) throw new Error(`the server responded ${answer.status}`);
  render(await answer.json());
} catch (error) {
  place.replaceChildren(element("p", { className: "notice failed", textContent: `The API description could not be loaded: ${error.message}` }));
}
