// The report of a policy diff: the same past under two policies, and what really happened.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/report/charts.h"
#include "sim/report/report.h"

namespace muster::sim::report {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostRows = 30;

std::string Tenths(double value) { return fmt::format("{:.1f}", value); }

std::vector<Cell> RowOf(std::string name, const Json& totals, const char* key, bool times,
                        const char* unit = "") {
  std::vector<Cell> row = {{std::move(name)}};
  for (const char* side : {"recorded", "old", "new"}) {
    if (side == std::string("recorded") && !totals.contains(side)) continue;
    const auto& figures = totals.at(side);
    if (!figures.contains(key)) {
      row.push_back({"-"});
    } else if (times) {
      row.push_back({SpanText(figures.at(key))});
    } else {
      row.push_back({figures.at(key).is_number_integer()
                         ? fmt::format("{}{}", figures.at(key).get<std::int64_t>(), unit)
                         : fmt::format("{}{}", Tenths(figures.at(key)), unit)});
    }
  }
  return row;
}

Grid Totals(const Json& diff) {
  const auto& totals = diff.at("totals");
  Grid grid;
  grid.caption = "All jobs";
  grid.head = {""};
  if (totals.contains("recorded")) grid.head.emplace_back("recorded");
  grid.head.insert(grid.head.end(), {"old", "new"});
  grid.rows = {RowOf("mean wait", totals, "wait_s", true),
               RowOf("90 % wait at most", totals, "p90_wait_s", true),
               RowOf("mean completion time", totals, "completion_s", true),
               RowOf("GPUs in use", totals, "utilisation_pct", false, " %"),
               RowOf("pauses", totals, "pauses", false),
               RowOf("lost GPU-hours", totals, "lost_gpu_hours", false),
               RowOf("moves", totals, "moves", false),
               RowOf("resizes", totals, "resizes", false),
               RowOf("last end", totals, "last_end_s", true)};
  grid.note =
      "A wait ends with the first start; the completion time is from submission to end. Lost is "
      "work that had to be done again.";
  if (totals.contains("recorded")) {
    grid.note +=
        " Recorded is what really happened: how far it is from the old policy is how far the "
        "replay is from the truth.";
  }
  return grid;
}

Grid Groups(const Json& groups, const char* what) {
  Grid grid;
  grid.caption = fmt::format("By {}, the largest change first", what);
  grid.head = {what,      "jobs",    "old wait",       "new wait",
               "old p90", "new p90", "old completion", "new completion"};
  for (const auto& group : groups) {
    if (grid.rows.size() == kMostRows) {
      grid.note = fmt::format("{} of {} are shown.", kMostRows, groups.size());
      break;
    }
    const auto& before = group.at("old");
    const auto& after = group.at("new");
    std::vector<Cell> row = {{group.at("name").get<std::string>()},
                             {fmt::format("{}", group.at("jobs").get<std::int64_t>())}};
    for (const char* key : {"wait_s", "p90_wait_s", "completion_s"}) {
      const double was = before.at(key), is = after.at(key);
      const bool same = SpanText(was) == SpanText(is);
      row.push_back({SpanText(was), !same && was < is});
      row.push_back({SpanText(is), !same && is < was});
    }
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

Grid Jobs(const Json& jobs, const char* caption) {
  Grid grid;
  grid.caption = caption;
  grid.head = {"job",      "name",     "user",           "queue",
               "old wait", "new wait", "old completion", "new completion"};
  for (const auto& job : jobs) {
    const auto text = [&](const char* key) {
      return Cell{Shorten(job.at(key).get<std::string>(), 30)};
    };
    const auto span = [&](const char* key) { return Cell{SpanText(job.at(key))}; };
    grid.rows.push_back({text("id"), text("name"), text("user"), text("queue"), span("old_wait_s"),
                         span("new_wait_s"), span("old_completion_s"), span("new_completion_s")});
  }
  return grid;
}

Plot Times(const Json& curves, const char* key, const std::string& what, const char* name) {
  const std::vector<Sample> samples = {
      {"old", curves.at("old").at(key).get<std::vector<double>>()},
      {"new", curves.at("new").at(key).get<std::vector<double>>()}};
  Plot plot;
  plot.name = name;
  plot.caption = {
      fmt::format("Distribution of the {}s", what),
      fmt::format("The share of jobs whose {} is at most so long, under the old and the "
                  "new policy, on a logarithmic axis.",
                  what)};
  plot.note = "The further to the left the better. The axis is logarithmic.";
  plot.draw = [samples, what](double width) { return DrawDistribution(samples, what, width); };
  return plot;
}

Plot Use(const Json& diff) {
  std::vector<Panel> panels;
  const double span = diff.at("span_s");
  for (const char* side : {"old", "new"}) {
    const auto parts = diff.at("curves").at(side).at("utilisation_pct").get<std::vector<double>>();
    Panel panel;
    panel.name = side;
    panel.note = fmt::format("mean {} %", Tenths(diff.at("totals").at(side).at("utilisation_pct")));
    panel.to_s = span;
    panel.steps.reserve(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      panel.steps.push_back(
          {span * static_cast<double>(i) / static_cast<double>(parts.size()), parts[i]});
    }
    panels.push_back(std::move(panel));
  }
  Plot plot;
  plot.name = "utilisation";
  plot.caption = {"Utilisation over time",
                  "The share of the GPUs that jobs hold, under the old and the new policy."};
  plot.note = "The share of the GPUs that jobs hold, in percent.";
  plot.draw = [panels](double width) { return DrawPanels(panels, width); };
  return plot;
}

}  // namespace

std::string SpanText(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::vector<File> DiffReport(const Origin& origin, const nlohmann::json& diff) {
  Page page("Two policies on the same jobs");
  auto facts = origin.files;
  const auto number = [&](const char* key) {
    return fmt::format("{}", diff.at(key).get<std::int64_t>());
  };
  facts.emplace_back("jobs compared", number("jobs"));
  facts.emplace_back("GPUs", number("gpus"));
  facts.emplace_back("time", SpanText(diff.at("span_s")));
  for (const auto& [key, text] : {std::pair("not_compared", "could not run to their end"),
                                  {"left_out", "left out: never ran"},
                                  {"still_there", "counted with what they did so far"},
                                  {"carried_over", "came before, take up room"}}) {
    if (diff.at(key).get<std::int64_t>() > 0) facts.emplace_back(text, number(key));
  }
  facts.emplace_back("made by", "muster policy diff, version " + origin.version);
  page.Add(facts);
  page.Heading("Old and new");
  page.Add(Totals(diff));
  page.Heading("Who gains, and who pays");
  page.Add(Groups(diff.at("queues"), "queue"));
  page.Add(Groups(diff.at("users"), "user"));
  if (!diff.at("gain").empty()) page.Add(Jobs(diff.at("gain"), "Jobs that end sooner"));
  if (!diff.at("lose").empty()) page.Add(Jobs(diff.at("lose"), "Jobs that end later"));
  page.Heading("Waits and completion times");
  page.Add(Times(diff.at("curves"), "wait_s", "wait", "wait"));
  page.Add(Times(diff.at("curves"), "completion_s", "completion time", "completion"));
  page.Heading("Utilisation over time");
  page.Add(Use(diff));
  return std::move(page).Finish();
}

}  // namespace muster::sim::report
