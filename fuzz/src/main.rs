//! One reader of bytes under libFuzzer: `make fuzz READER=list`.
//!
//! The readers and what they begin with are in [`shared::testing::readers`], where `cargo test` runs them too. Here is
//! only the one that an operator has for itself.

#![no_main]

use std::sync::OnceLock;
use std::{env, fs};

use cronjob_operator::plan::cron;
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use shared::testing::readers::{READERS, Reader, texts};

const OWN: [Reader; 1] = [Reader {
    name: "cron",
    read: schedule,
    seeds: || texts(&["*/5 0-23,1 ? FEB-dec sun", "TZ=Asia/Tokyo 1 2 29 2 *"]),
}];

fn schedule(bytes: &[u8]) {
    let Ok(schedule) = cron::parse(&String::from_utf8_lossy(bytes)) else { return };
    let _ = schedule.next(Timestamp::UNIX_EPOCH);
}

static CHOSEN: OnceLock<&Reader> = OnceLock::new();

/// The reader of the environment; its seeds go to the folder that libFuzzer gets as well.
fn choose() {
    let (name, seeds) = (env::var("READER").expect("READER"), env::var("SEEDS").expect("SEEDS"));
    let all = || READERS.iter().chain(&OWN);
    let Some(reader) = all().find(|reader| reader.name == name) else {
        panic!("READER is one of {:?}", all().map(|reader| reader.name).collect::<Vec<_>>())
    };
    for (number, seed) in (reader.seeds)().iter().enumerate() {
        fs::write(format!("{seeds}/seed-{number}"), seed).expect("a folder of seeds");
    }
    CHOSEN.set(reader).ok().expect("chosen once");
}

fuzz_target!(init: choose(), |bytes: &[u8]| {
    if let Some(reader) = CHOSEN.get() {
        (reader.read)(bytes);
    }
});
