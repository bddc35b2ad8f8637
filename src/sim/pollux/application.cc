#include "sim/pollux/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "sim/trace/table.h"

namespace muster::sim {
namespace {

// What the publication adds to its own files.
struct Known {
  const char* name;
  int epochs;
  int max_local;  // 0: as measured
};
constexpr std::array<Known, 6> kPublished = {{{"bert", 2, 0},
                                              {"cifar10", 100, 0},
                                              {"deepspeech2", 80, 0},
                                              {"imagenet", 90, 0},
                                              {"ncf", 10, 0},
                                              {"yolov3", 50, 8}}};
constexpr std::size_t kMostNodesMeasured = 16;

// One digit a node, turned so that the text is the smallest of all turns.
std::string PlacementName(std::span<const int> placement) {
  std::string name;
  for (const int gpus : placement) name += static_cast<char>('0' + gpus);
  std::string best = name;
  for (std::size_t i = 1; i < name.size(); ++i) {
    std::rotate(name.begin(), name.begin() + 1, name.end());
    best = std::min(best, name);
  }
  return best;
}

double Mix(double lower, double upper, double weight) { return lower + (upper - lower) * weight; }

// The numbers of some columns, row by row.
Result<std::vector<std::vector<double>>> Numbers(const Table& table,
                                                 std::initializer_list<const char*> names) {
  std::vector<std::size_t> columns;
  for (const char* name : names) {
    const auto column = table.Column(name);
    if (!column) return tl::unexpected(column.error());
    columns.push_back(*column);
  }
  std::vector<std::vector<double>> rows(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const auto column : columns) {
      const auto value = table.Number(row, column);
      if (!value) return tl::unexpected(value.error());
      rows[row].push_back(*value);
    }
  }
  return rows;
}

}  // namespace

Result<std::unique_ptr<Application>> Application::Read(const std::string& folder,
                                                       const std::string& name,
                                                       const TraceFiles& files) {
  auto made = std::make_unique<Application>();
  made->name_ = name;
  const auto profile = folder + "/profiles/" + name;
  const auto meshes = folder + "/interpolation";
  const auto mesh = meshes + "/" + name;
  if (auto done = made->ReadPlacements(profile + "/placements.csv", files); !done)
    return tl::unexpected(done.error());
  if (auto done = made->ReadRuns(profile, files); !done) return tl::unexpected(done.error());
  const auto there = files.Names(meshes);
  if (!there) return tl::unexpected(there.error());
  const bool packed = std::ranges::binary_search(*there, name + "_tetra.csv.gz");
  const auto tetrahedra = mesh + (packed ? "_tetra.csv.gz" : "_tetra.csv");
  if (auto done = made->ReadMesh(mesh + "_points.csv", tetrahedra, files); !done)
    return tl::unexpected(done.error());
  for (const auto& known : kPublished) {
    if (name != known.name) continue;
    made->max_epochs_ = std::min(known.epochs, made->max_epochs_);
    if (known.max_local > 0) made->max_local_ = known.max_local;
  }
  made->progress_.assign(1, 0.0);
  for (int epoch = 0; epoch < made->max_epochs_; ++epoch) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [batch, run] : made->runs_) {
      least = std::min(least, run.progress[static_cast<std::size_t>(epoch)]);
    }
    made->progress_.push_back(least);
  }
  return made;
}

Result<void> Application::ReadPlacements(const std::string& path, const TraceFiles& files) {
  const auto table = Table::Read(path, files);
  if (!table) return tl::unexpected(table.error());
  const auto names = table->Column("placement");
  if (!names) return tl::unexpected(names.error());
  const auto rows = Numbers(*table, {"local_bsz", "step_time", "sync_time"});
  if (!rows) return tl::unexpected(rows.error());
  if (rows->empty()) return Fail(ErrorCode::kInvalid, path + " has no rows");
  min_local_ = std::numeric_limits<int>::max();
  for (std::size_t row = 0; row < rows->size(); ++row) {
    const auto& cells = (*rows)[row];
    const int local = static_cast<int>(cells[0]);
    measured_[table->Text(row, *names)].push_back({local, {cells[1], cells[2]}});
    min_local_ = std::min(min_local_, local);
    max_local_ = std::max(max_local_, local);
  }
  for (auto& [name, samples] : measured_) {
    std::ranges::stable_sort(samples, {}, &Sample::local);
  }
  return {};
}

Result<void> Application::ReadRuns(const std::string& folder, const TraceFiles& files) {
  const auto names = files.Names(folder);
  if (!names) return tl::unexpected(names.error());
  max_epochs_ = std::numeric_limits<int>::max();
  for (const auto& file : *names) {
    constexpr std::string_view kBefore = "validation-";
    if (!file.starts_with(kBefore)) continue;
    const int batch = std::atoi(file.c_str() + kBefore.size());
    std::string path = folder;
    path.append("/").append(file);
    const auto table = Table::Read(path, files);
    if (!table) return tl::unexpected(table.error());
    const auto rows = Numbers(*table, {"progress", "iteration", "grad_sqr", "grad_var"});
    if (!rows) return tl::unexpected(rows.error());
    auto& run = runs_[batch];
    for (const auto& cells : *rows) {
      run.progress.push_back(cells[0]);
      run.iteration.push_back(cells[1]);
      run.grad_sqr.push_back(cells[2]);
      run.grad_var.push_back(cells[3]);
    }
    max_epochs_ = std::min(max_epochs_, static_cast<int>(rows->size()));
  }
  if (runs_.empty() || max_epochs_ == 0 || runs_.begin()->first <= 0) {
    return Fail(ErrorCode::kInvalid, folder + " has no run of training",
                "validation-BATCH.csv with a row for each epoch is needed");
  }
  return {};
}

Result<void> Application::ReadMesh(const std::string& points, const std::string& tetrahedra,
                                   const TraceFiles& files) {
  const auto point_table = Table::Read(points, files);
  if (!point_table) return tl::unexpected(point_table.error());
  const auto rows =
      Numbers(*point_table, {"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"});
  if (!rows) return tl::unexpected(rows.error());
  std::vector<Mesh::Point> measured;
  for (const auto& cells : *rows) {
    measured.push_back({cells[0], cells[1], cells[2]});
    corner_times_.push_back({cells[3], cells[4]});
  }
  const auto mesh_table = Table::Read(tetrahedra, files);
  if (!mesh_table) return tl::unexpected(mesh_table.error());
  const auto corners = Numbers(*mesh_table, {"p0", "p1", "p2", "p3"});
  if (!corners) return tl::unexpected(corners.error());
  std::vector<Mesh::Cell> cells;
  for (std::size_t row = 0; row < corners->size(); ++row) {
    Mesh::Cell tetra{};
    for (std::size_t i = 0; i < tetra.size(); ++i) {
      const double corner = (*corners)[row][i];
      if (corner < 0 || corner >= static_cast<double>(measured.size())) {
        return Fail(ErrorCode::kInvalid, mesh_table->Where(row) + "there is no such point");
      }
      tetra[i] = static_cast<std::size_t>(corner);
    }
    cells.push_back(tetra);
  }
  if (cells.empty()) return Fail(ErrorCode::kInvalid, tetrahedra + " has no rows");
  mesh_ = Mesh(std::move(measured), std::move(cells));
  return {};
}

StepTimes Application::Times(std::span<const int> placement, int local) const {
  const auto name = PlacementName(placement);
  const auto [known, fresh] = known_.try_emplace(name + '/' + std::to_string(local));
  if (!fresh) return known->second;
  const auto found = measured_.find(name);
  if (found == measured_.end() || found->second.size() < 2) {
    int gpus = 0;
    for (const int here : placement) gpus += here;
    return known->second = Interpolate(
               static_cast<double>(std::min(placement.size(), kMostNodesMeasured)), gpus, local);
  }
  // The first sample that is not below, and the one before it.
  const auto& samples = found->second;
  auto upper = std::ranges::lower_bound(samples, local, {}, &Sample::local);
  upper = std::clamp(upper, samples.begin() + 1, samples.end() - 1);
  const auto lower = upper - 1;
  const double x = std::clamp(local, samples.front().local, samples.back().local) - lower->local;
  const double width = upper->local - lower->local;
  const auto line = [&](double from, double to) { return (to - from) / width * x + from; };
  return known->second = {line(lower->times.step, upper->times.step),
                          line(lower->times.sync, upper->times.sync)};
}

StepTimes Application::Interpolate(double nodes, double gpus, double local) const {
  const auto found = mesh_.Find({nodes, gpus, local});
  const auto& corners = mesh_.cell(found.cell);
  StepTimes times;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    times.step += found.weights[i] * corner_times_[corners[i]].step;
    times.sync += found.weights[i] * corner_times_[corners[i]].sync;
  }
  return times;
}

Application::Between Application::Around(int batch) const {
  const auto upper = runs_.lower_bound(batch);
  if (upper == runs_.end()) return {runs_.rbegin()->second, runs_.rbegin()->second, 0};
  if (upper->first == batch || upper == runs_.begin()) return {upper->second, upper->second, 0};
  const auto lower = std::prev(upper);
  return {lower->second, upper->second,
          static_cast<double>(batch - lower->first) / (upper->first - lower->first)};
}

Gradient Application::GradientAt(int batch, int epoch) const {
  const auto [lower, upper, weight] = Around(batch);
  const auto row = static_cast<std::size_t>(epoch);
  return {Mix(lower.grad_sqr[row], upper.grad_sqr[row], weight),
          Mix(lower.grad_var[row], upper.grad_var[row], weight)};
}

double Application::ProgressAt(int epochs) const {
  return progress_[static_cast<std::size_t>(epochs)];
}

double Application::IterationsAt(int batch, int epoch) const {
  const auto [lower, upper, weight] = Around(batch);
  const auto row = static_cast<std::size_t>(epoch);
  return Mix(lower.iteration[row], upper.iteration[row], weight);
}

}  // namespace muster::sim
