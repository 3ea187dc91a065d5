//! The metrics of the process.

use shared::process::metrics::Metrics;
use storage_version_migrator_operator::metrics::MigratorMetrics;
use storage_version_migrator_operator::objects::GroupResource;

#[test]
fn metrics_show_how_far_migrations_have_come() {
    let metrics = Metrics::new("storage-version-migrator-operator");
    let own = MigratorMetrics::register(&metrics);
    let widgets = GroupResource { group: "example.com".into(), resource: "widgets".into() };
    own.page(&widgets, 500, Some(700));
    let text = metrics.to_text();
    for line in [
        "storage_migrator_core_migrator_migrated_objects_total{resource=\"widgets.example.com\"} 500\n",
        "storage_migrator_core_migrator_remaining_objects{resource=\"widgets.example.com\"} 700\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    own.ended(&widgets, "Succeeded");
    let text = metrics.to_text();
    let ended =
        "storage_migrator_core_migrator_migrations_total{resource=\"widgets.example.com\",Status=\"Succeeded\"} 1\n";
    assert!(text.contains(ended) && !text.contains("remaining_objects{"), "{text}");
}
