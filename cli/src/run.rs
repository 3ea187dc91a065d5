//! Runs the commands.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::CommandFactory;
use kube::{Client, Config};
use shared::transport::clock::Clock;
use tokio::time::sleep;

use crate::cause::State;
use crate::connect::{config_of, kubeconfig, reach_options};
use crate::diagnose::diagnose;
use crate::diagnosis::Diagnosis;
use crate::discovery::Kinds;
use crate::evidence::Evidence;
use crate::flags::{Cli, ClusterFlags, Command, Output};
use crate::output::{Verdict, json, print, printable, report, write};
use crate::preflight;
use crate::reach::{Reach, ReachOptions};
use crate::read::{self, Wanted};
use crate::status::Status;
use crate::survey::survey;
use crate::trace::{self, Trace, gather};

const WHY_PERIOD: Duration = Duration::from_secs(1);
const STATUS_PERIOD: Duration = Duration::from_secs(2);
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// The apiserver, and the operators behind it.
pub struct Session {
    client: Client,
    reach: Reach,
    clock: Clock,
    kinds: Kinds,
}

impl Session {
    pub async fn new(config: Config, options: ReachOptions) -> Result<Self> {
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config).context("cannot make a client")?;
        let kinds = Kinds::read(&client).await.with_context(|| format!("cannot reach the cluster at {server}"))?;
        let reach = Reach::new(client.clone(), options);
        Ok(Self { client, reach, clock: Clock::system(), kinds })
    }

    pub async fn why(&self, object: &[String], namespace: &str) -> Result<Diagnosis> {
        Ok(diagnose(&self.evidence(object, namespace).await?))
    }

    pub async fn trace(&self, object: &[String], namespace: &str) -> Result<Trace> {
        let mut evidence = self.evidence(object, namespace).await?;
        gather::follow(&self.client, &self.reach, &self.kinds, &mut evidence).await;
        Ok(trace::join(&evidence))
    }

    async fn evidence(&self, object: &[String], namespace: &str) -> Result<Evidence> {
        let wanted = Wanted::parse(object)?;
        let now = || self.clock.now();
        read::read(&self.client, &self.reach, &self.kinds, (&wanted, namespace), now).await
    }

    pub async fn status(&self) -> Result<Status> {
        Ok(Status::new(&survey(&self.client, &self.reach, &self.kinds, || self.clock.now()).await?))
    }
}

pub async fn run(cli: Cli) -> Result<Verdict> {
    let Cli { command, cluster } = cli;
    match command {
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kubectl-operators", &mut script);
            print(&String::from_utf8_lossy(&script))?;
            Ok(Verdict::Well)
        }
        Command::Why { object, output, trace: true, .. } => {
            let (session, namespace) = connect(cluster).await?;
            let found = session.trace(&object, &namespace).await?;
            print(&if output == Output::Json { json(&found)? } else { found.to_string() })?;
            Ok(Verdict::Well)
        }
        Command::Why { object, output, watch, trace: false } => {
            let (session, namespace) = connect(cluster).await?;
            why(&session, (object.as_slice(), namespace.as_str()), output, watch).await
        }
        Command::Preflight(flags) => {
            let kubeconfig = kubeconfig(cluster.kubeconfig.as_deref())?;
            let options = reach_options(&cluster)?;
            preflight::command::command(flags, kubeconfig, cluster.context, options).await
        }
        Command::Status { output, watch } => {
            let (session, _) = connect(cluster).await?;
            status(&session, output, watch).await
        }
    }
}

async fn why(
    session: &Session,
    (object, namespace): (&[String], &str),
    output: Output,
    watch: bool,
) -> Result<Verdict> {
    let mut shown = String::new();
    loop {
        let found = session.why(object, namespace).await;
        if let Some(found) = or_report(found, watch && !shown.is_empty())? {
            let key = format!("{} {:?}", found.summary, found.state);
            if key != shown || is_terminal() && watch {
                show(&text_of(&found, output)?, watch)?;
                shown = key;
            }
            if !watch {
                return Ok(if found.state == State::Stuck { Verdict::Stuck } else { Verdict::Well });
            }
        }
        sleep(WHY_PERIOD).await;
    }
}

async fn status(session: &Session, output: Output, watch: bool) -> Result<Verdict> {
    let mut is_shown = false;
    loop {
        if let Some(status) = or_report(session.status().await, watch && is_shown)? {
            let text = if output == Output::Json { json(&status)? } else { status.to_string() };
            show(&printable(&text), watch)?;
            is_shown = true;
            if !watch {
                return Ok(if status.is_alarming() { Verdict::Stuck } else { Verdict::Well });
            }
        }
        sleep(STATUS_PERIOD).await;
    }
}

/// Reports an error and goes on while watching; otherwise returns it.
fn or_report<T>(answer: Result<T>, is_watching: bool) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if is_watching => {
            report(&error);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

async fn connect(flags: ClusterFlags) -> Result<(Session, String)> {
    let options = reach_options(&flags)?;
    let config = config_of(kubeconfig(flags.kubeconfig.as_deref())?, flags.context).await?;
    let namespace = flags.namespace.unwrap_or_else(|| config.default_namespace.clone());
    Ok((Session::new(config, options).await?, namespace))
}

fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

fn text_of(found: &Diagnosis, output: Output) -> Result<String> {
    Ok(match output {
        Output::Json => printable(&json(found)?),
        Output::Text if is_terminal() => format!("{}\n", found.coloured()),
        Output::Text => format!("{found}\n"),
    })
}

fn show(text: &str, watch: bool) -> Result<()> {
    let before = if watch && is_terminal() { CLEAR } else { "" };
    write(&format!("{before}{text}"))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn an_error_ends_what_nobody_watches() {
        assert_eq!(or_report(Ok(1), false).unwrap(), Some(1));
        assert_eq!(or_report(Ok(1), true).unwrap(), Some(1));
        assert_eq!(or_report(Err::<i32, _>(anyhow!("no answer")), false).unwrap_err().to_string(), "no answer");
        assert_eq!(or_report(Err::<i32, _>(anyhow!("no answer")), true).unwrap(), None);
    }
}
