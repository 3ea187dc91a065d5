//! An explanation as a person reads it with curl.
//!
//! Left out: causes beyond this operator and this object, which `kubectl operators why` finds.

use std::fmt;

use super::{CacheState, Decision, Explanation, Held, KeyState, Outcome, Role, Stage, Standing, Subject, Timer};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operator, version, role, time, object, keys, caches } = self;
        let role = match role {
            Role::Leader => "leads",
            Role::Standby => "stands by",
            Role::Shadow => "is a shadow",
        };
        writeln!(f, "{object}, by {operator} {version}, which {role}, at {time:.0}")?;
        if keys.is_empty() {
            writeln!(f, "This operator does not act on it.")?;
        }
        for key in keys {
            write!(f, "{key}")?;
        }
        for cache in caches {
            writeln!(f, "cache {cache}")?;
        }
        Ok(())
    }
}

/// `deployments.apps default/web`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version: _, resource, namespace: _, name: _ } = self;
        let dot = if group.is_empty() { "" } else { "." };
        write!(f, "{resource}{dot}{group} {}", self.key())
    }
}

impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, key, now, last, standing } = self;
        writeln!(f, "queue {queue}, key {key}: {standing}")?;
        match &now[..] {
            [] => writeln!(f, "  now: not in the cache, or nothing to decide")?,
            stages => writeln!(f, "  now: {}", Stages(stages))?,
        }
        last.iter().try_for_each(|decision| writeln!(f, "  {decision}"))
    }
}

struct Stages<'a>(&'a [Stage]);

impl fmt::Display for Stages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Stage { text, reason: _ }) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", then " };
            write!(f, "{comma}{text}")?;
        }
        Ok(())
    }
}

/// `2026-11-22T10:00:00Z: create 3 (2 of 5 active), failed: exceeded quota; 4 times since 2026-11-22T09:59:00Z`.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, first, count, stages, outcome, error, cause: _, wrote: _, more_written: _ } = self;
        write!(f, "{time:.0}: {}", Stages(stages))?;
        match (outcome, error) {
            (Outcome::Applying, _) => f.write_str(", in progress")?,
            (Outcome::Done, _) => {}
            (Outcome::Failed, error) => write!(f, ", failed: {}", error.as_deref().unwrap_or("no error"))?,
        }
        if *count > 1 { write!(f, "; {count} times since {first:.0}") } else { Ok(()) }
    }
}

/// `at rest`, or all that it waits for.
impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queued, processing, held, failures, next_try, timer } = self;
        let mut waits = Vec::new();
        waits.extend(queued.map(|since| format!("waits in the queue since {since:.0}")));
        waits.extend(processing.filter(|_| held.is_empty()).map(|since| format!("syncs since {since:.0}")));
        waits.extend(held.iter().map(|Held { resource, until }| format!("held until {resource} has {until}")));
        if *failures > 0 {
            waits.push(format!("failed {failures} times in a row"));
        }
        waits.extend(next_try.map(|at| format!("next retry at {at:.0}")));
        waits.extend(timer.as_ref().map(|Timer { due, purpose }| match purpose.as_str() {
            "" => format!("next sync at {due:.0}"),
            purpose => format!("next sync at {due:.0} for {purpose}"),
        }));
        if waits.is_empty() { f.write_str("at rest") } else { f.write_str(&waits.join(", ")) }
    }
}

/// `pods (labels app): version 12, last heard at 2026-11-22T10:00:00Z`.
impl fmt::Display for CacheState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, of, synced, version, heard, failing, unreadable } = self;
        f.write_str(resource)?;
        if !of.is_empty() {
            write!(f, " ({of})")?;
        }
        if *synced {
            write!(f, ": version {version}")?;
        } else {
            f.write_str(": not listed yet")?;
        }
        if let Some(heard) = heard {
            write!(f, ", last heard at {heard:.0}")?;
        }
        if let Some(failing) = failing {
            write!(f, ", failing: {failing}")?;
        }
        unreadable.iter().try_for_each(|(key, error)| write!(f, ", cannot decode {key}: {error}"))
    }
}
