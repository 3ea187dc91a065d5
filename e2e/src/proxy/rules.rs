//! Which requests a fault strikes, and what it does to them.
//! Left out: chance. A fault strikes the request it names, so that a failure can be repeated.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, StatusCode};

/// A request's path: `*` stands for one segment, `**` for any number of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<String>);

impl Pattern {
    pub fn new(path: &str) -> Self {
        Self(path.split('/').map(str::to_owned).collect())
    }

    pub fn matches(&self, path: &str) -> bool {
        matches(&self.0, &path.split('/').collect::<Vec<_>>())
    }
}

fn matches(pattern: &[String], path: &[&str]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((any, rest)) if any == "**" => (0..=path.len()).any(|skipped| matches(rest, &path[skipped..])),
        Some((segment, rest)) => {
            path.split_first().is_some_and(|(first, left)| (segment == "*" || segment == first) && matches(rest, left))
        }
    }
}

#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub body: Bytes,
}

impl Seen {
    pub(super) fn is_watch(&self) -> bool {
        self.query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1"))
    }
}

/// The fate of a request after a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As if nothing had been.
    Continue,
    /// The connection is closed without an answer; before the request is forwarded it then is not.
    Drop,
}

/// A piece of the test that runs while the request waits.
pub type Hook = Arc<dyn Fn(Seen) -> BoxFuture<'static, Verdict> + Send + Sync>;

#[derive(Clone)]
pub enum Action {
    /// It is forwarded, but later.
    Delay(Duration),
    /// The proxy answers in place of the apiserver, which never hears of it.
    Reply { status: StatusCode, retry_after: Option<Duration> },
    /// The apiserver does what was asked; the client never learns of it.
    LoseResponse,
    /// Runs before it is forwarded.
    Before(Hook),
    /// Runs once the apiserver has answered, before the client knows.
    After(Hook),
}

impl Action {
    /// An answer with `status` and nothing done.
    pub fn reply(status: StatusCode) -> Self {
        Self::Reply { status, retry_after: None }
    }

    pub fn before<F>(hook: impl Fn(Seen) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        Self::Before(Arc::new(move |seen| Box::pin(hook(seen))))
    }

    pub fn after<F>(hook: impl Fn(Seen) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        Self::After(Arc::new(move |seen| Box::pin(hook(seen))))
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(by) => write!(f, "delay by {by:?}"),
            Self::Reply { status, .. } => write!(f, "reply {status}"),
            Self::LoseResponse => write!(f, "lose the response"),
            Self::Before(_) => write!(f, "hook before"),
            Self::After(_) => write!(f, "hook after"),
        }
    }
}

type Condition = Box<dyn Fn(&Seen) -> bool + Send + Sync>;

/// An action, and the requests it is for: unless said otherwise the first one of any kind.
pub struct Rule {
    action: Action,
    methods: Vec<Method>,
    path: Pattern,
    condition: Option<Condition>,
    /// How many requests it still lets pass.
    pass: u32,
    /// How many requests it still strikes; none for all.
    strike: Option<u32>,
}

impl Rule {
    pub fn new(action: Action) -> Self {
        Self { action, methods: Vec::new(), path: Pattern::new("**"), condition: None, pass: 0, strike: Some(1) }
    }

    /// Only requests of this method; may be said several times.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.methods.push(method);
        self
    }

    /// Only requests that are meant to change something.
    #[must_use]
    pub fn writes(self) -> Self {
        WRITES.into_iter().fold(self, Self::method)
    }

    /// Only requests to this path, see [`Pattern`].
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.path = Pattern::new(path);
        self
    }

    /// Only requests for which `condition` holds.
    #[must_use]
    pub fn when(mut self, condition: impl Fn(&Seen) -> bool + Send + Sync + 'static) -> Self {
        self.condition = Some(Box::new(condition));
        self
    }

    /// Begins with the n-th such request; the first is 1.
    #[must_use]
    pub fn nth(mut self, n: u32) -> Self {
        self.pass = n.saturating_sub(1);
        self
    }

    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.strike = Some(times);
        self
    }

    #[must_use]
    pub fn always(mut self) -> Self {
        self.strike = None;
        self
    }

    /// Counts `seen` if it is meant, and says whether it is struck.
    fn fires(&mut self, seen: &Seen) -> bool {
        let meant = (self.methods.is_empty() || self.methods.contains(&seen.method))
            && self.path.matches(&seen.path)
            && self.condition.as_ref().is_none_or(|condition| condition(seen));
        if !meant {
            return false;
        }
        if self.pass > 0 {
            self.pass -= 1;
            return false;
        }
        match &mut self.strike {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

pub(super) const WRITES: [Method; 4] = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

pub(super) fn is_write(method: &Method) -> bool {
    WRITES.contains(method)
}

#[derive(Default)]
pub(super) struct Rules(Mutex<Vec<Rule>>);

impl Rules {
    pub(super) fn add(&self, rule: Rule) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(rule);
    }

    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The action of the first rule that fires on `seen`.
    pub(super) fn action(&self, seen: &Seen) -> Option<Action> {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rules.iter_mut().find_map(|rule| rule.fires(seen).then(|| rule.action.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(method: Method, path: &str) -> Seen {
        Seen { method, path: path.to_owned(), query: String::new(), body: Bytes::new() }
    }

    #[test]
    fn patterns_match_segments() {
        let check = |pattern: &str, path: &str| Pattern::new(pattern).matches(path);
        assert!(check("/api/v1/namespaces/*/pods", "/api/v1/namespaces/a/pods"));
        assert!(!check("/api/v1/namespaces/*/pods", "/api/v1/namespaces/a/pods/b"));
        assert!(check("/api/v1/**", "/api/v1/namespaces/a/pods/b/status"));
        assert!(check("**/pods/*", "/api/v1/namespaces/a/pods/b"));
        assert!(check("**/status", "/apis/apps/v1/namespaces/a/deployments/b/status"));
        assert!(!check("**/status", "/api/v1/namespaces/status/pods"));
        assert!(check("**", "/"));
    }

    #[test]
    fn the_nth_meant_request_is_struck_as_often_as_said() {
        let rules = Rules::default();
        rules.add(Rule::new(Action::LoseResponse).method(Method::POST).path("**/pods").nth(2).times(2));
        let post = seen(Method::POST, "/api/v1/namespaces/a/pods");
        let struck: Vec<bool> = (0..5).map(|_| rules.action(&post).is_some()).collect();
        assert_eq!(struck, [false, true, true, false, false]);
        assert!(rules.action(&seen(Method::GET, "/api/v1/namespaces/a/pods")).is_none());
    }

    #[test]
    fn the_first_rule_that_fires_counts() {
        let rules = Rules::default();
        rules.add(Rule::new(Action::reply(StatusCode::CONFLICT)).writes().when(|seen| !seen.body.is_empty()));
        rules.add(Rule::new(Action::LoseResponse).always());
        let mut put = seen(Method::PUT, "/a");
        assert_eq!(format!("{:?}", rules.action(&put)), "Some(lose the response)");
        put.body = Bytes::from_static(b"{}");
        assert_eq!(format!("{:?}", rules.action(&put)), "Some(reply 409 Conflict)");
        assert_eq!(format!("{:?}", rules.action(&put)), "Some(lose the response)");
    }

    #[test]
    fn watches_are_told_by_their_query() {
        let mut get = seen(Method::GET, "/api/v1/pods");
        assert!(!get.is_watch());
        get.query = "allowWatchBookmarks=true&watch=true".to_owned();
        assert!(get.is_watch());
    }
}
