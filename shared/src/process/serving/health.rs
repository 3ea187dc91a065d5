//! `/livez`, `/readyz` and `/healthz`, in upstream's words.
//!
//! Left out: reasons in public. Who isn't authorized sees which check fails; `/readyz/<check>` tells why, to those who
//! may see it.
//!
//! Upstream: staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;

use super::{Answer, Query};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    Livez,
    Readyz,
    /// Upstream's older form, as its manifests ask for: whether to let the process live.
    Healthz,
}

impl Probe {
    const ALL: [Self; 3] = [Self::Livez, Self::Readyz, Self::Healthz];

    fn name(self) -> &'static str {
        match self {
            Self::Livez => "livez",
            Self::Readyz => "readyz",
            Self::Healthz => "healthz",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|probe| probe.name() == name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Fine,
    /// Something is not well, and fails no probe: the process is of use all the same.
    Degraded(String),
    Failed(String),
}

type Ask = Box<dyn Fn() -> Health + Send + Sync>;

struct Check {
    probes: Vec<Probe>,
    name: String,
    ask: Ask,
}

/// Named checks, asked for each probe anew; cheap to clone. `ping`, which never fails, is always among them.
#[derive(Clone)]
pub struct Checks(Arc<Mutex<Vec<Check>>>);

impl Default for Checks {
    fn default() -> Self {
        let ping = Check { probes: Probe::ALL.to_vec(), name: "ping".to_owned(), ask: Box::new(|| Health::Fine) };
        Self(Arc::new(Mutex::new(vec![ping])))
    }
}

impl Checks {
    /// Adds a check that these probes ask; its name is what `?exclude=` and `/readyz/<name>` take.
    pub fn add(
        &self,
        probes: &[Probe],
        name: impl Into<String>,
        ask: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.add_graded(probes, name, move || ask().map_or_else(Health::Failed, |()| Health::Fine));
    }

    /// Adds a check that is shown but fails no probe: the process is of use although something is not well.
    pub fn add_note(
        &self,
        probes: &[Probe],
        name: impl Into<String>,
        ask: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.add_graded(probes, name, move || ask().map_or_else(Health::Degraded, |()| Health::Fine));
    }

    /// Adds a check that says itself whether a probe fails.
    pub fn add_graded(
        &self,
        probes: &[Probe],
        name: impl Into<String>,
        ask: impl Fn() -> Health + Send + Sync + 'static,
    ) {
        self.checks().push(Check { probes: probes.to_vec(), name: name.into(), ask: Box::new(ask) });
    }

    /// What all checks of a probe found together, with the reasons of those that are worst.
    pub(crate) fn health(&self, probe: Probe) -> Health {
        let (mut degraded, mut failed) = (Vec::new(), Vec::new());
        for Check { name, ask, .. } in self.checks().iter().filter(|check| check.probes.contains(&probe)) {
            match ask() {
                Health::Fine => {}
                Health::Degraded(reason) => degraded.push(format!("{name}: {reason}")),
                Health::Failed(reason) => failed.push(format!("{name}: {reason}")),
            }
        }
        match (failed.is_empty(), degraded.is_empty()) {
            (false, _) => Health::Failed(failed.join("; ")),
            (true, false) => Health::Degraded(degraded.join("; ")),
            (true, true) => Health::Fine,
        }
    }

    fn checks(&self) -> MutexGuard<'_, Vec<Check>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Upstream: `handleRootHealth`.
    pub(super) fn answer(&self, probe: Probe, query: &Query) -> Answer {
        let mut unknown: Vec<&str> = query.values("exclude").collect();
        let (mut lines, mut failures) = (String::new(), String::new());
        for Check { name, ask, .. } in self.checks().iter().filter(|check| check.probes.contains(&probe)) {
            // Writing to a string cannot fail.
            let _ = if unknown.contains(&name.as_str()) || query.values("exclude").any(|excluded| excluded == name) {
                unknown.retain(|excluded| excluded != name);
                writeln!(lines, "[+]{name} excluded: ok")
            } else {
                match ask() {
                    Health::Fine => writeln!(lines, "[+]{name} ok"),
                    Health::Degraded(_) => writeln!(lines, "[+]{name} degraded: reason withheld"),
                    Health::Failed(reason) => {
                        let _ = writeln!(failures, "[-]{name} failed: {reason}");
                        writeln!(lines, "[-]{name} failed: reason withheld")
                    }
                }
            };
        }
        if !unknown.is_empty() {
            unknown.sort_unstable();
            unknown.dedup();
            let names = unknown.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(",");
            let _ = writeln!(lines, "warn: some health checks cannot be excluded: no matches for {names}");
        }
        let probe = probe.name();
        if !failures.is_empty() {
            tracing::debug!(probe, failures, "health check failed");
            return Answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{probe} check failed\n"));
        }
        let is_verbose = query.value("verbose").is_some();
        Answer::text(
            StatusCode::OK,
            if is_verbose { format!("{lines}{probe} check passed\n") } else { "ok".to_owned() },
        )
    }

    /// Whether the probe asks a check of this name.
    pub(super) fn has(&self, probe: Probe, name: &str) -> bool {
        self.checks().iter().any(|check| check.name == name && check.probes.contains(&probe))
    }

    /// One check alone, with its reason. Upstream: `adaptCheckToHandler`.
    pub(super) fn answer_one(&self, probe: Probe, name: &str) -> Option<Answer> {
        let checks = self.checks();
        let check = checks.iter().find(|check| check.name == name && check.probes.contains(&probe))?;
        Some(match (check.ask)() {
            Health::Fine => Answer::text(StatusCode::OK, "ok"),
            Health::Degraded(reason) => Answer::text(StatusCode::OK, format!("degraded: {reason}\n")),
            Health::Failed(reason) => {
                Answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n"))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(probe: Probe, query: &str, code: u16, body: &str) {
        let checks = Checks::default();
        checks.add(&[Probe::Livez, Probe::Healthz], "leaderElection", || Ok(()));
        checks.add(&[Probe::Readyz], "informer-sync/pods", || Err("not listed yet".to_owned()));
        let answer = checks.answer(probe, &Query::new(query));
        assert_eq!((answer.code.as_u16(), answer.body.as_str()), (code, body), "{probe:?} {query}");
    }

    // Upstream: `TestMutableHealthzHandler`, staging/src/k8s.io/controller-manager/pkg/healthz/handler_test.go, and
    // `TestFormatQuoted`, `testMultipleChecks`, staging/src/k8s.io/apiserver/pkg/server/healthz/healthz_test.go.
    #[test]
    fn the_answer_is_short_if_all_is_well_and_long_if_asked_for_or_not_well() {
        check(Probe::Livez, "", 200, "ok");
        check(Probe::Livez, "verbose", 200, "[+]ping ok\n[+]leaderElection ok\nlivez check passed\n");
        check(Probe::Healthz, "verbose=true", 200, "[+]ping ok\n[+]leaderElection ok\nhealthz check passed\n");
        let failed = "[+]ping ok\n[-]informer-sync/pods failed: reason withheld\nreadyz check failed\n";
        check(Probe::Readyz, "", 500, failed);
    }

    #[test]
    fn checks_can_be_excluded() {
        check(Probe::Readyz, "exclude=informer-sync%2Fpods", 200, "ok");
        let excluded = "[+]ping ok\n[+]informer-sync/pods excluded: ok\nreadyz check passed\n";
        check(Probe::Readyz, "verbose&exclude=informer-sync/pods", 200, excluded);
        let unknown = "[+]ping ok\n[+]leaderElection excluded: ok\n\
                       warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check passed\n";
        check(Probe::Livez, "verbose&exclude=b&exclude=leaderElection&exclude=a", 200, unknown);
    }

    #[test]
    fn a_note_fails_no_probe() {
        let checks = Checks::default();
        checks.add_note(&[Probe::Readyz], "feeds", || Err("widgets: forbidden".to_owned()));
        let answer = checks.answer(Probe::Readyz, &Query::new("verbose"));
        let lines = "[+]ping ok\n[+]feeds degraded: reason withheld\nreadyz check passed\n";
        assert_eq!((answer.code.as_u16(), answer.body.as_str()), (200, lines));
        let alone = checks.answer_one(Probe::Readyz, "feeds").unwrap();
        assert_eq!((alone.code.as_u16(), alone.body.as_str()), (200, "degraded: widgets: forbidden\n"));
    }

    #[test]
    fn checks_together_are_as_bad_as_the_worst() {
        let checks = Checks::default();
        assert_eq!(checks.health(Probe::Readyz), Health::Fine);
        checks.add_note(&[Probe::Readyz], "feeds", || Err("widgets: forbidden".to_owned()));
        assert_eq!(checks.health(Probe::Readyz), Health::Degraded("feeds: widgets: forbidden".to_owned()));
        checks.add(&[Probe::Readyz], "informer-sync/pods", || Err("not listed yet".to_owned()));
        assert_eq!(checks.health(Probe::Readyz), Health::Failed("informer-sync/pods: not listed yet".to_owned()));
        assert_eq!(checks.health(Probe::Livez), Health::Fine);
    }

    #[test]
    fn one_check_alone_tells_its_reason() {
        let checks = Checks::default();
        checks.add(&[Probe::Readyz], "informer-sync/pods", || Err("not listed yet".to_owned()));
        let answer = checks.answer_one(Probe::Readyz, "informer-sync/pods").unwrap();
        assert_eq!((answer.code.as_u16(), answer.body.as_str()), (500, "internal server error: not listed yet\n"));
        assert_eq!(checks.answer_one(Probe::Readyz, "ping").unwrap().body, "ok");
        assert!(checks.answer_one(Probe::Livez, "informer-sync/pods").is_none());
    }
}
