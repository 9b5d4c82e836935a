//! Reads JSON text (RFC 8259) without building values. Every method returns `None` for what it does not take, which means
//! "not mine" and never "wrong": the caller leaves the text to Python, which decides and words the error.

use std::ops::Range;

/// A position in JSON text. The text must be UTF-8; the scanner does not check it.
pub struct Scanner<'a> {
    text: &'a [u8],
    pub at: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Scanner { text, at: 0 }
    }

    /// Skips white space.
    pub fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// Whether nothing but white space is left.
    pub fn is_at_end(&mut self) -> bool {
        self.space();
        self.at == self.text.len()
    }

    /// Takes this byte, after white space, if it comes next.
    pub fn take(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    /// Takes a string of printable ASCII without escapes: its JSON text and its value are the same bytes. Returns where it
    /// is, without the quotes.
    pub fn plain_string(&mut self) -> Option<Range<usize>> {
        if !self.take(b'"') {
            return None;
        }
        let begin = self.at;
        loop {
            match self.text.get(self.at)? {
                b'"' => break,
                b'\\' => return None,
                0x20..=0x7e => self.at += 1,
                _ => return None,
            }
        }
        self.at += 1;
        Some(begin..self.at - 1)
    }

    /// Takes any value with at most `depth_max` nested levels of arrays and objects. Returns where it is, without the white
    /// space around it.
    pub fn value(&mut self, depth_max: usize) -> Option<Range<usize>> {
        self.space();
        let begin = self.at;
        self.nested(depth_max)?;
        Some(begin..self.at)
    }

    // Recursion is bounded by the depth, which the caller bounds.
    fn nested(&mut self, depth_max: usize) -> Option<()> {
        self.space();
        match self.text.get(self.at)? {
            b'"' => self.string(),
            b'{' => {
                let depth_max = depth_max.checked_sub(1)?;
                self.at += 1;
                if self.take(b'}') {
                    return Some(());
                }
                loop {
                    self.space();
                    self.string()?;
                    if !self.take(b':') {
                        return None;
                    }
                    self.nested(depth_max)?;
                    if self.take(b'}') {
                        return Some(());
                    }
                    if !self.take(b',') {
                        return None;
                    }
                }
            }
            b'[' => {
                let depth_max = depth_max.checked_sub(1)?;
                self.at += 1;
                if self.take(b']') {
                    return Some(());
                }
                loop {
                    self.nested(depth_max)?;
                    if self.take(b']') {
                        return Some(());
                    }
                    if !self.take(b',') {
                        return None;
                    }
                }
            }
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let end = self.at + word.len();
        (self.text.get(self.at..end)? == word).then(|| self.at = end)
    }

    fn string(&mut self) -> Option<()> {
        if self.text.get(self.at) != Some(&b'"') {
            return None;
        }
        self.at += 1;
        loop {
            match self.text.get(self.at)? {
                b'"' => break,
                b'\\' => {
                    match self.text.get(self.at + 1)? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
                        b'u' => {
                            let digits = self.text.get(self.at + 2..self.at + 6)?;
                            // Halves of surrogate pairs are Python's to judge.
                            if !digits.iter().all(u8::is_ascii_hexdigit)
                                || matches!(
                                    digits,
                                    [b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..]
                                )
                            {
                                return None;
                            }
                            self.at += 6;
                        }
                        _ => return None,
                    };
                }
                0..=0x1f => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        self.at += usize::from(self.text.get(self.at) == Some(&b'-'));
        let begin = self.at;
        let digits = self.digits()?;
        if digits > 1 && self.text[begin] == b'0' {
            return None;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Some(())
    }

    /// Takes one or more digits; returns how many.
    fn digits(&mut self) -> Option<usize> {
        let begin = self.at;
        while matches!(self.text.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > begin).then_some(self.at - begin)
    }
}
