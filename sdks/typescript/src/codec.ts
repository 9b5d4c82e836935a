/** How models become what is sent. */

/** The members of a JSON object. */
export type Sent = Readonly<Record<string, unknown>>;

/** Makes of a member what is sent; gets its name for error messages. */
export type Convert<Value> = (value: Value, name: string) => unknown;

/** The members that are not sent as they are. */
export type Converters<Model> = { readonly [Name in keyof Model]?: Convert<NonNullable<Model[Name]>> };

/** A copy with converted members. Members that are unknown stay: the server names them in its error. */
export function encode<Model extends object>(source: Model, converters?: Converters<Model>): Sent {
  const sent = { ...source } as Record<string, unknown>;
  if (converters !== undefined) {
    for (const [name, convert] of Object.entries<Convert<never> | undefined>(converters)) {
      const value = sent[name];
      if (convert !== undefined && value !== undefined && value !== null) {
        sent[name] = convert(value as never, name);
      }
    }
  }
  return sent;
}

/** Converts each item of a list. */
export function each<Value>(convert: Convert<Value>): Convert<readonly Value[]> {
  return (values, name) => values.map((value, index) => convert(value, `${name}[${index}]`));
}
