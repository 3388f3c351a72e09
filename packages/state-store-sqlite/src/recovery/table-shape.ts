/** What rows of this package's tables look like, asked of a store that was just made: the schema stays in one place. */
import type { Connection } from "../connection.ts";
import { kindOf } from "./record.ts";
import type { ValueKind } from "./record.ts";

export interface Column {
  readonly name: string;
  readonly kinds: ReadonlySet<ValueKind>;
  /** Rows that are older than the column lack it. */
  readonly mayLack: boolean;
}

export interface TableShape {
  readonly table: string;
  readonly columns: readonly Column[];
  /** The column that is the row number under another name; its value is not in the record. */
  readonly rowidColumn: string | undefined;
  /** Told apart from the others, but made anew and never brought. */
  readonly isDerived: boolean;
}

interface ColumnRow {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly dflt_value: string | null;
  readonly pk: number;
}

const kindsOfType: ReadonlyMap<string, readonly ValueKind[]> = new Map([
  ["INTEGER", ["integer"]],
  ["INT", ["integer"]],
  // A whole number in a REAL column is stored as an integer.
  ["REAL", ["real", "integer"]],
  ["TEXT", ["text"]],
  ["BLOB", ["blob"]],
]);
const everyKind: readonly ValueKind[] = ["null", "integer", "real", "text", "blob"];

/** Open calls of running turns, and how far the search index is: made anew from the entries. */
const derivedTables: ReadonlySet<string> = new Set(["call", "search_index", "search_gone"]);

const schemaColumns: readonly (readonly [string, readonly ValueKind[]])[] = [
  ["type", ["text"]],
  ["name", ["text"]],
  ["tbl_name", ["text"]],
  ["rootpage", ["integer", "null"]],
  ["sql", ["text", "null"]],
];

/** The schema's own table, which no pragma describes. */
const schemaShape: TableShape = {
  table: "sqlite_schema",
  columns: schemaColumns.map(([name, kinds]) => ({ name, kinds: new Set(kinds), mayLack: false })),
  rowidColumn: undefined,
  isDerived: true,
};

function shapeOf(rows: Connection, table: string, isDerived: boolean): TableShape {
  const found = rows.all<ColumnRow>('SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)', table);
  const keyCount = found.filter(({ pk }) => pk > 0).length;
  const isRowid = ({ pk, type }: ColumnRow): boolean => pk === 1 && keyCount === 1 && type === "INTEGER";
  return {
    table,
    isDerived,
    rowidColumn: found.find(isRowid)?.name,
    columns: found.map((column) => {
      const kinds = isRowid(column) ? [] : (kindsOfType.get(column.type) ?? everyKind);
      const isNullable = isRowid(column) || column.notnull === 0;
      return {
        name: column.name,
        kinds: new Set<ValueKind>(isNullable ? [...kinds, "null"] : kinds),
        mayLack: column.notnull === 0 || column.dflt_value !== null,
      };
    }),
  };
}

function doesFit({ columns }: TableShape, serials: readonly number[]): boolean {
  return (
    serials.length <= columns.length &&
    serials.every((serial, index) => columns[index]?.kinds.has(kindOf(serial))) &&
    columns.slice(serials.length).every(({ mayLack }) => mayLack)
  );
}

interface TableRow {
  readonly name: string;
  readonly type: string;
  readonly wr: number;
}

export class TableShapes {
  readonly #all: readonly TableShape[];
  /** Tables without row numbers: their rows lie in an index, which this recovery does not read. */
  readonly unread: readonly string[];

  constructor(rows: Connection) {
    const tables = rows
      .all<TableRow>("SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' ORDER BY name")
      .filter(({ name, type }) => !name.startsWith("sqlite_") && (type === "table" || type === "shadow"));
    const isDerived = ({ name, type }: TableRow): boolean => type === "shadow" || derivedTables.has(name);
    this.unread = tables.filter((one) => one.wr === 1 && !isDerived(one)).map(({ name }) => name);
    const withRowids = tables.filter(({ wr }) => wr === 0);
    this.#all = [schemaShape, ...withRowids.map((one) => shapeOf(rows, one.name, isDerived(one)))];
  }

  /** The names of the tables whose rows are brought. */
  get brought(): readonly string[] {
    return this.#all.filter(({ isDerived }) => !isDerived).map(({ table }) => table);
  }

  /** The tables in which a row with such values can be; a row that lacks columns counts only where none fits whole. */
  fitting(serials: readonly number[]): readonly TableShape[] {
    const all = this.#all.filter((shape) => doesFit(shape, serials));
    const whole = all.filter(({ columns }) => columns.length === serials.length);
    return whole.length > 0 ? whole : all;
  }
}
