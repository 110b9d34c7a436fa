// Brings the page to life; the last of the scripts.

byId("theme").addEventListener("click", changeTheme);
startTable();
startPaperTables();
startComparison();
startMetric();
startEmbedding();
startDiagnosis();
for (const link of document.querySelectorAll("nav a")) link.hidden = document.querySelector(link.hash).hidden;
document.documentElement.dataset.ready = "yes";
