//! The codec of Tocsin's plain creates: what it takes, it reads and writes byte for byte as Python does; everything else it
//! leaves to Python, by returning `None`. It decides nothing about timers, owns no thread, no socket and no file, and keeps
//! nothing but verdicts on URLs.

mod create;
mod instants;
mod json;

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use create::{Fields, Limits, Recorded};
use json::Scanner;

/// The most verdicts on URLs that are kept; then they are asked for again.
const VERDICTS_MAX: usize = 4_096;

/// Reads creates, under the settings' limits: bytes, levels, microseconds and characters.
///
/// `shown` gets a URL, and returns how answers show it, or `None` if it is not a URL of HTTP that may be called. Its results
/// are kept until `forget_targets`.
#[pyclass]
struct Codec {
    limits: Limits,
    shown: Py<PyAny>,
    verdicts: HashMap<Box<[u8]>, Option<Arc<str>>>,
    /// The last namespace: most requests name the same one.
    namespace: Option<Py<PyString>>,
}

#[pymethods]
impl Codec {
    #[new]
    #[pyo3(signature = (shown, *, payload_bytes_max, payload_depth_max, execute_past_max_us, execute_ahead_max_us,
        id_chars_max, url_chars_max))]
    fn new(
        shown: Py<PyAny>,
        payload_bytes_max: usize,
        payload_depth_max: usize,
        execute_past_max_us: i64,
        execute_ahead_max_us: i64,
        id_chars_max: usize,
        url_chars_max: usize,
    ) -> Self {
        let limits = Limits {
            payload_bytes_max,
            payload_depth_max,
            past_max: execute_past_max_us,
            ahead_max: execute_ahead_max_us,
            id_chars_max,
            url_chars_max,
        };
        Codec {
            limits,
            shown,
            verdicts: HashMap::new(),
            namespace: None,
        }
    }

    /// The create of a request's body that arrived at `now_us`. `key` is the idempotency key of its header; `first_try`:
    /// no key of it was sent before.
    fn create(
        &mut self,
        body: &Bound<PyBytes>,
        now_us: i64,
        key: Option<&str>,
        first_try: bool,
    ) -> PyResult<Option<Create>> {
        let text = body.as_bytes();
        if std::str::from_utf8(text).is_err() {
            return Ok(None);
        }
        let mut scanner = Scanner::new(text);
        let Some(fields) = create::read(text, &mut scanner, now_us, &self.limits) else {
            return Ok(None);
        };
        if !scanner.is_at_end() {
            return Ok(None);
        }
        self.packed(body, fields, now_us, key, first_try)
    }

    /// The creates of a batch's body, in their order, if it has at most `items_max` and each of them is one that `create`
    /// takes.
    fn creates(
        &mut self,
        body: &Bound<PyBytes>,
        now_us: i64,
        key: Option<&str>,
        first_try: bool,
        items_max: usize,
    ) -> PyResult<Option<Vec<Create>>> {
        let text = body.as_bytes();
        if std::str::from_utf8(text).is_err() {
            return Ok(None);
        }
        let mut scanner = Scanner::new(text);
        let begins = scanner.take(b'{')
            && scanner
                .plain_string()
                .is_some_and(|name| &text[name] == b"timers")
            && scanner.take(b':')
            && scanner.take(b'[');
        if !begins {
            return Ok(None);
        }
        let mut found = Vec::new();
        loop {
            let Some(fields) = create::read(text, &mut scanner, now_us, &self.limits) else {
                return Ok(None);
            };
            if found.len() == items_max {
                return Ok(None);
            }
            let Some(packed) = self.packed(body, fields, now_us, key, first_try)? else {
                return Ok(None);
            };
            found.push(packed);
            if scanner.take(b']') {
                break;
            }
            if !scanner.take(b',') {
                return Ok(None);
            }
        }
        Ok((scanner.take(b'}') && scanner.is_at_end()).then_some(found))
    }

    /// Forgets the verdicts on URLs.
    fn forget_targets(&mut self) {
        self.verdicts.clear();
    }
}

impl Codec {
    fn packed(
        &mut self,
        body: &Bound<PyBytes>,
        fields: Fields,
        now_us: i64,
        key: Option<&str>,
        first_try: bool,
    ) -> PyResult<Option<Create>> {
        let (py, text) = (body.py(), body.as_bytes());
        let own = fields.key.clone().map(|place| &text[place]);
        let header = key.map(str::as_bytes);
        let key = match (own, header) {
            (Some(own), Some(header)) if own != header => return Ok(None),
            _ => own.or(header),
        };
        if key.is_some_and(|key| !first_try || !create::is_key(key)) {
            return Ok(None);
        }
        let Some(shown_url) = self.shown_url(py, &text[fields.url.clone()])? else {
            return Ok(None);
        };
        let name = as_text(&text[fields.namespace.clone()]);
        let namespace = match &self.namespace {
            Some(last) if last.bind(py).to_str()? == name => last.clone_ref(py),
            _ => {
                let new = PyString::new(py, name).unbind();
                self.namespace = Some(new.clone_ref(py));
                new
            }
        };
        Ok(Some(Create {
            uuid: create::uuid(text, &fields),
            keys: key.map(|key| create::key_hashes(text, &fields, key)),
            body: body.clone().unbind(),
            execute_at: fields.execute_at,
            fields,
            namespace,
            shown_url,
            now_us,
            traceparent: None,
            firing: String::new(),
        }))
    }

    fn shown_url(&mut self, py: Python, url: &[u8]) -> PyResult<Option<Arc<str>>> {
        if let Some(known) = self.verdicts.get(url) {
            return Ok(known.clone());
        }
        let shown: Option<String> = self.shown.call1(py, (as_text(url),))?.extract(py)?;
        // One that JSON would escape, or that has secrets which are to be filled in, is Python's.
        let verdict = shown
            .filter(|shown| {
                shown
                    .bytes()
                    .all(|byte| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\')
            })
            .map(Arc::from);
        if self.verdicts.len() == VERDICTS_MAX {
            self.verdicts.clear();
        }
        self.verdicts.insert(url.into(), verdict.clone());
        Ok(verdict)
    }
}

/// A create that was taken. `traceparent` and `firing` are set before its record is made.
#[pyclass]
struct Create {
    body: Py<PyBytes>,
    fields: Fields,
    uuid: [u8; 16],
    keys: Option<[String; 2]>,
    shown_url: Arc<str>,
    now_us: i64,
    /// The timer's namespace.
    #[pyo3(get)]
    namespace: Py<PyString>,
    /// The instant at which it is due, in microseconds.
    #[pyo3(get)]
    execute_at: i64,
    /// The trace that it continues, if there is one.
    #[pyo3(get, set)]
    traceparent: Option<String>,
    /// The name of its firing; empty until the engine has accepted it.
    #[pyo3(get, set)]
    firing: String,
}

#[pymethods]
impl Create {
    /// The timer's id.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, as_text(&self.body.as_bytes(py)[self.fields.id.clone()]))
    }

    /// The timer's UUID, 16 bytes.
    #[getter]
    fn uuid<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.uuid)
    }

    /// The hashes of its idempotency key, and of what that covers; nothing without a key.
    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match &self.keys {
            Some([key, body]) => PyTuple::new(py, [(key.as_str(), body.as_str())]),
            None => Ok(PyTuple::empty(py)),
        }
    }

    /// The stored record.
    fn record<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let with = Recorded {
            now: self.now_us,
            traceparent: self.traceparent.as_deref(),
            firing: &self.firing,
            keys: self.keys.as_ref(),
        };
        PyBytes::new(
            py,
            &create::record(self.body.as_bytes(py), &self.fields, &with),
        )
    }

    /// The answer to its client, once it is stored in that shard.
    fn answer<'py>(&self, py: Python<'py>, shard_id: u32) -> Bound<'py, PyBytes> {
        let text = self.body.as_bytes(py);
        PyBytes::new(
            py,
            &create::answer(
                text,
                &self.fields,
                &self.uuid,
                shard_id,
                self.now_us,
                &self.shown_url,
            ),
        )
    }
}

/// The text of bytes that the scanner has found to be ASCII.
fn as_text(ascii: &[u8]) -> &str {
    std::str::from_utf8(ascii).expect("ASCII is UTF-8")
}

/// Reads Tocsin's plain creates in place of Python.
#[pymodule]
fn tocsin_native(module: &Bound<PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Codec>()?;
    module.add_class::<Create>()
}
