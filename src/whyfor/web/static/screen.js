// A terminal's screen: takes a program's output, and knows what would be seen. Questions to the terminal, titles,
// the clipboard and the mouse are left out.

const WIDE = /[ᄀ-ᅟ⺀-꓏가-힣豈-﫿︰-﹯＀-｠￠-￦]|\p{Emoji_Presentation}/u;
const PLAIN = { fg: null, bg: null, bold: false, dim: false, italic: false, under: false, inverse: false };

export class Screen {
  constructor(columns, rows) {
    this.size(columns, rows);
    this.reset();
  }

  reset() {
    this.lines = this.blank();
    this.other = null; // the usual screen while the alternate one is shown
    this.x = this.y = 0;
    this.style = PLAIN;
    this.saved = null;
    this.top = 0;
    this.bottom = this.rows - 1;
    this.hidden = false; // the cursor
    this.rest = "";
  }

  size(columns, rows) {
    const before = this.lines;
    this.columns = columns;
    this.rows = rows;
    if (!before) return;
    this.lines = this.blank();
    const from = Math.max(0, Math.min(before.length, this.y + 1) - rows);
    before.slice(from, from + rows).forEach((line, at) => line.slice(0, columns).forEach((cell, x) => (this.lines[at][x] = cell)));
    this.other = this.other && this.blank();
    this.y = Math.min(this.y - from, rows - 1);
    this.x = Math.min(this.x, columns - 1);
    this.top = 0;
    this.bottom = rows - 1;
  }

  blank() {
    return Array.from({ length: this.rows }, () => this.line());
  }

  line() {
    return Array.from({ length: this.columns }, () => ({ text: " ", style: PLAIN }));
  }

  // -- output ----------------------------------------------------------------------------------------

  write(text) {
    const all = this.rest + text;
    this.rest = "";
    let at = 0;
    while (at < all.length) {
      const code = all.charCodeAt(at);
      if (code === 27) {
        const used = this.escape(all, at);
        if (!used) {
          this.rest = all.slice(at, at + 4096);
          return;
        }
        at += used;
      } else if (code < 32 || code === 127) {
        this.control(code);
        at += 1;
      } else {
        const char = String.fromCodePoint(all.codePointAt(at));
        this.put(char);
        at += char.length;
      }
    }
  }

  control(code) {
    if (code === 8) this.x = Math.max(0, this.x - 1);
    else if (code === 9) this.x = Math.min(this.columns - 1, (this.x | 7) + 1);
    else if (code >= 10 && code <= 12) this.feed();
    else if (code === 13) this.x = 0;
  }

  put(char) {
    if (/^[\p{M}\u200d\ufe0f]$/u.test(char)) return;
    const width = WIDE.test(char) ? 2 : 1;
    if (this.x + width > this.columns) {
      this.x = 0;
      this.feed();
    }
    this.lines[this.y][this.x] = { text: char, style: this.style };
    if (width === 2) this.lines[this.y][this.x + 1] = { text: "", style: this.style };
    this.x += width;
  }

  feed() {
    if (this.y === this.bottom) this.scroll(1);
    else this.y = Math.min(this.rows - 1, this.y + 1);
  }

  scroll(count, top = this.top) {
    for (let n = Math.min(Math.abs(count), this.rows); n > 0; n -= 1) {
      if (count > 0) {
        this.lines.splice(top, 1);
        this.lines.splice(this.bottom, 0, this.line());
      } else {
        this.lines.splice(this.bottom, 1);
        this.lines.splice(top, 0, this.line());
      }
    }
  }

  // -- escapes ---------------------------------------------------------------------------------------

  // How many characters an escape takes; 0 if the rest of it is still to come.
  escape(all, at) {
    const next = all[at + 1];
    if (next === undefined) return 0;
    if (next === "[") return this.sequence(all, at);
    if ("]PX^_".includes(next)) {
      const end = /\x07|\x1b\\/.exec(all.slice(at + 2, at + 100_000));
      return end ? 2 + end.index + end[0].length : 0;
    }
    if ("()*+#%".includes(next)) return all[at + 2] === undefined ? 0 : 3;
    this.single(next);
    return 2;
  }

  single(char) {
    if (char === "7") this.saved = [this.x, this.y, this.style];
    else if (char === "8" && this.saved) [this.x, this.y, this.style] = this.saved;
    else if (char === "D") this.feed();
    else if (char === "E") {
      this.x = 0;
      this.feed();
    } else if (char === "M") {
      if (this.y === this.top) this.scroll(-1);
      else this.y = Math.max(0, this.y - 1);
    } else if (char === "c") this.reset();
  }

  sequence(all, at) {
    const found = /^\x1b\[([0-?]*)([ -/]*)([@-~])/.exec(all.slice(at, at + 256));
    if (!found) return all.length - at < 256 ? 0 : 2;
    const [whole, given, between, last] = found;
    if (between || /^[<=>]/.test(given)) return whole.length;
    const asked = given.startsWith("?");
    const numbers = given.replace("?", "").split(/[;:]/).map((each) => (each === "" ? null : Math.min(+each, 99_999)));
    if (asked) this.mode(numbers, last);
    else this.act(last, numbers, given);
    return whole.length;
  }

  mode(numbers, last) {
    if (last !== "h" && last !== "l") return;
    for (const number of numbers) {
      if (number === 25) this.hidden = last === "l";
      else if (number === 1049 || number === 1047 || number === 47) this.alternate(last === "h");
    }
  }

  alternate(on) {
    if (on && !this.other) {
      this.other = this.lines;
      this.back = [this.x, this.y];
      this.lines = this.blank();
    } else if (!on && this.other) {
      this.lines = this.other;
      this.other = null;
      [this.x, this.y] = this.back;
    }
  }

  act(last, numbers, given) {
    const first = numbers[0];
    const count = Math.max(1, first ?? 1);
    const within = (value, most) => Math.max(0, Math.min(value, most));
    const row = (value) => within(value, this.rows - 1);
    const column = (value) => within(value, this.columns - 1);
    const acts = {
      A: () => (this.y = row(this.y - count)),
      B: () => (this.y = row(this.y + count)),
      C: () => (this.x = column(this.x + count)),
      D: () => (this.x = column(this.x - count)),
      E: () => ([this.x, this.y] = [0, row(this.y + count)]),
      F: () => ([this.x, this.y] = [0, row(this.y - count)]),
      G: () => (this.x = column(count - 1)),
      "`": () => (this.x = column(count - 1)),
      d: () => (this.y = row(count - 1)),
      H: () => ([this.x, this.y] = [column(Math.max(1, numbers[1] ?? 1) - 1), row(count - 1)]),
      J: () => this.eraseScreen(first ?? 0),
      K: () => this.eraseLine(first ?? 0),
      L: () => this.inside() && this.scroll(-count, this.y),
      M: () => this.inside() && this.scroll(count, this.y),
      S: () => this.scroll(count),
      T: () => this.scroll(-count),
      P: () => this.shift(count),
      "@": () => this.shift(-count),
      X: () => this.wipe(this.y, this.x, this.x + count),
      m: () => (this.style = styled(this.style, given)),
      r: () => this.region(count - 1, (numbers[1] ?? this.rows) - 1),
      s: () => (this.saved = [this.x, this.y, this.style]),
      u: () => this.saved && ([this.x, this.y, this.style] = this.saved),
    };
    acts.f = acts.H;
    acts[last]?.();
  }

  inside() {
    return this.y >= this.top && this.y <= this.bottom;
  }

  region(top, bottom) {
    this.top = Math.max(0, Math.min(top, this.rows - 1));
    this.bottom = Math.max(this.top, Math.min(bottom, this.rows - 1));
    this.x = this.y = 0;
  }

  shift(count) {
    const line = this.lines[this.y];
    for (let n = Math.min(Math.abs(count), this.columns); n > 0; n -= 1) {
      if (count > 0) {
        line.splice(this.x, 1);
        line.push({ text: " ", style: PLAIN });
      } else {
        line.splice(this.x, 0, { text: " ", style: PLAIN });
        line.pop();
      }
    }
  }

  wipe(y, from, to) {
    for (let x = from; x < Math.min(to, this.columns); x += 1) this.lines[y][x] = { text: " ", style: { ...PLAIN, bg: this.style.bg } };
  }

  eraseLine(how) {
    this.wipe(this.y, how === 0 ? this.x : 0, how === 1 ? this.x + 1 : this.columns);
  }

  eraseScreen(how) {
    this.eraseLine(how === 3 ? 2 : how);
    for (let y = 0; y < this.rows; y += 1) {
      if ((how >= 2 && y !== this.y) || (how === 0 && y > this.y) || (how === 1 && y < this.y)) this.wipe(y, 0, this.columns);
    }
  }
}

// -- colours -----------------------------------------------------------------------------------------

const SWITCHES = {
  1: { bold: true }, 2: { dim: true }, 3: { italic: true }, 4: { under: true }, 7: { inverse: true },
  22: { bold: false, dim: false }, 23: { italic: false }, 24: { under: false }, 27: { inverse: false },
  39: { fg: null }, 49: { bg: null },
};

function styled(before, given) {
  const codes = given.split(/[;:]/).map(Number);
  let style = before;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) style = PLAIN;
    else if (SWITCHES[code]) style = { ...style, ...SWITCHES[code] };
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(at + 1));
      style = { ...style, [code === 38 ? "fg" : "bg"]: colour };
      at += used;
    } else style = { ...style, ...basic(code) };
  }
  return style;
}

function basic(code) {
  if (code >= 30 && code <= 37) return { fg: code - 30 };
  if (code >= 40 && code <= 47) return { bg: code - 40 };
  if (code >= 90 && code <= 97) return { fg: code - 82 };
  if (code >= 100 && code <= 107) return { bg: code - 92 };
  return {};
}

// A colour is a number of the first 16, or a text for CSS; and how many numbers told it.
function extended(rest) {
  if (rest[0] === 2) return [`rgb(${rest.slice(1, 4).map((each) => each & 255).join(" ")})`, 4];
  const index = (rest[1] ?? 0) & 255;
  if (rest[0] !== 5) return [null, 1];
  if (index < 16) return [index, 2];
  if (index > 231) return [`rgb(${Array(3).fill(8 + (index - 232) * 10).join(" ")})`, 2];
  const level = (value) => (value ? 55 + value * 40 : 0);
  const cube = index - 16;
  return [`rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level).join(" ")})`, 2];
}
