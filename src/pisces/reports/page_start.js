// Brings the page to life; the last of the scripts.

byId("theme").addEventListener("click", changeTheme);
startTable();
startPaperTables();
startComparison();
startMetric();
startEmbedding();
startDiagnosis();
document.documentElement.dataset.ready = "yes";
