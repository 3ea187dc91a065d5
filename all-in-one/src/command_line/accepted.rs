//! Flags of kube-controller-manager that have no effect here. They are accepted, so that its manifests work unchanged.
//!
//! Values are checked as upstream checks them. The tests compare this table with the operators and with upstream's flags.

use clap::builder::{OsStringValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use shared::process::flags::{GoDuration, parse_bool};

/// The values that a flag takes.
#[derive(Clone, Copy)]
enum Takes {
    Bool,
    Integer,
    Duration,
    Text,
    /// Any other value would ask for something that does not exist here.
    OneOf(&'static [&'static str]),
}

use Takes::{Bool, Duration, Integer, OneOf, Text};

/// Flags that have no effect for the same reason.
struct Group {
    why: &'static str,
    flags: &'static [(&'static str, Takes)],
}

/// The heading of these flags in `--help`.
const HEADING: &str = "Accepted without effect";

const GROUPS: &[Group] = &[
    Group {
        why: "token and access reviews use the credentials of --kubeconfig",
        flags: &[("authentication-kubeconfig", Text), ("authorization-kubeconfig", Text)],
    },
    Group {
        why: "requests authenticate with bearer tokens, not with client certificates or proxy headers",
        flags: &[
            ("authentication-skip-lookup", Bool),
            ("authentication-tolerate-lookup-failure", Bool),
            ("client-ca-file", Text),
            ("requestheader-allowed-names", Text),
            ("requestheader-client-ca-file", Text),
            ("requestheader-extra-headers-prefix", Text),
            ("requestheader-group-headers", Text),
            ("requestheader-uid-headers", Text),
            ("requestheader-username-headers", Text),
        ],
    },
    Group {
        why: "reviews are cached for 10s",
        flags: &[
            ("authentication-token-webhook-cache-ttl", Duration),
            ("authorization-webhook-cache-authorized-ttl", Duration),
            ("authorization-webhook-cache-unauthorized-ttl", Duration),
        ],
    },
    Group {
        why: "the self-signed certificate stays in memory, and --tls-cert-file names the only other one",
        flags: &[("cert-dir", Text), ("tls-sni-cert-key", Text)],
    },
    Group {
        why: "rustls serves TLS 1.2 and 1.3 with its own cipher suites and curves",
        flags: &[("tls-cipher-suites", Text), ("tls-curve-preferences", Text), ("tls-min-version", Text)],
    },
    Group {
        why: "the server has no such options",
        flags: &[
            ("disable-http2-serving", Bool),
            ("http2-max-streams-per-connection", Integer),
            ("permit-address-sharing", Bool),
            ("permit-port-sharing", Bool),
        ],
    },
    Group { why: "Go's profiles do not exist here", flags: &[("contention-profiling", Bool), ("profiling", Bool)] },
    Group { why: "the client chooses the content type of each request", flags: &[("kube-api-content-type", Text)] },
    Group {
        why: "there are no resyncs, and all controllers start at once",
        flags: &[("controller-start-interval", Duration), ("min-resync-period", Duration)],
    },
    Group {
        why: "no metric is hidden and no label is restricted",
        flags: &[
            ("allow-metric-labels", Text),
            ("allow-metric-labels-manifest", Text),
            ("disabled-metrics", Text),
            ("show-hidden-metrics-for-version", Text),
        ],
    },
    Group {
        why: "logs go to stderr unbuffered, at the level of --v",
        flags: &[
            ("log-flush-frequency", Duration),
            ("log-json-info-buffer-size", Text),
            ("log-json-split-stream", Bool),
            ("log-text-info-buffer-size", Text),
            ("log-text-split-stream", Bool),
            ("vmodule", Text),
        ],
    },
    Group {
        why: "controllers behave as in v1.36",
        flags: &[("emulated-version", Text), ("min-compatibility-version", Text)],
    },
    Group {
        why: "a cloud provider is a process of its own, at --cloud-provider-endpoint",
        flags: &[
            ("allow-untagged-cloud", Bool),
            ("cloud-config", Text),
            ("cloud-provider", OneOf(&["", "external"])),
            ("enable-leader-migration", Bool),
            // A file may migrate node-ipam-controller, whose Lease would then be another one than this process's.
            ("leader-migration-config", OneOf(&[""])),
            ("external-cloud-volume-plugin", Text),
            ("node-sync-period", Duration),
        ],
    },
    Group { why: "no folder is provisioned as a volume", flags: &[("enable-hostpath-provisioner", Bool)] },
    Group { why: "FlexVolumes are not supported", flags: &[("flex-volume-plugin-dir", Text)] },
];

/// All of them, for the command.
pub(super) fn args() -> impl Iterator<Item = Arg> {
    let rows = GROUPS.iter().flat_map(|group| group.flags.iter().map(|flag| (group.why, *flag)));
    rows.map(|(why, (name, takes))| takes.arg(name).help(format!("No effect: {why}.")).help_heading(HEADING))
}

/// A line for each group of which a flag was given.
pub(super) fn notes(matches: &ArgMatches) -> impl Iterator<Item = String> {
    GROUPS.iter().filter_map(|group| {
        let is_given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
        let given: Vec<String> =
            group.flags.iter().map(|(name, _)| *name).filter(is_given).map(|name| format!("--{name}")).collect();
        let have = if given.len() == 1 { "has" } else { "have" };
        (!given.is_empty()).then(|| format!("{} {have} no effect: {}", given.join(", "), group.why))
    })
}

impl Takes {
    fn arg(self, name: &'static str) -> Arg {
        let arg = Arg::new(name).long(name).action(ArgAction::Append).value_parser(self.parser());
        match self {
            Bool => arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL"),
            Integer => arg.allow_hyphen_values(true).value_name("NUMBER"),
            Duration => arg.allow_hyphen_values(true).value_name("DURATION"),
            Text | OneOf(_) => arg.allow_hyphen_values(true).value_name("TEXT"),
        }
    }

    fn parser(self) -> ValueParser {
        match self {
            Bool => ValueParser::new(parse_bool),
            Integer => ValueParser::new(clap::value_parser!(i32)),
            Duration => ValueParser::new(|text: &str| text.parse::<GoDuration>()),
            Text => ValueParser::new(OsStringValueParser::new()),
            OneOf(values) => ValueParser::new(move |text: &str| {
                let allowed: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
                let error = || format!("{text:?} is not supported here: must be {}", allowed.join(" or "));
                values.contains(&text).then_some(()).ok_or_else(error)
            }),
        }
    }
}
