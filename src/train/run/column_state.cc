// ColumnState: what is held of one column, and where its pieces lie.
#include <algorithm>

#include "base/check.h"
#include "train/run/state.h"

namespace muster::train {

ColumnState::ColumnState(int column, Buckets buckets, int planes, Arena& arena)
    : column_(column), buckets_(std::move(buckets)), planes_(planes), arena_(arena) {
  for (const auto& bucket : buckets_) floats_ += bucket.size();
}

ColumnState::Part ColumnState::NewPart(int parts, int part, bool own) {
  Part out;
  out.parts = parts;
  out.part = part;
  out.own = own;
  out.with_parameters = !computes_;
  std::size_t floats = 0;
  out.offsets.reserve(buckets_.size());
  for (const auto& bucket : buckets_) {
    out.offsets.push_back(floats);
    floats += PartOf(bucket, parts, part).size();
  }
  for (std::size_t i = 0; i < 2; ++i) {
    out.state.blocks[i] = arena_.Take(floats * static_cast<std::size_t>(planes_));
    if (out.with_parameters) out.parameters.blocks[i] = arena_.Take(floats);
  }
  return out;
}

std::span<float> ColumnState::ParametersOf(const Part& part, std::int64_t step,
                                           std::size_t bucket) const {
  const auto extent = PartOf(buckets_[bucket], part.parts, part.part);
  if (!part.with_parameters) return whole_.At(step).subspan(extent.first, extent.size());
  return part.parameters.At(step).subspan(part.offsets[bucket], extent.size());
}

std::span<float> ColumnState::StateOf(const Part& part, std::int64_t step,
                                      std::size_t bucket) const {
  const auto planes = static_cast<std::size_t>(planes_);
  const auto floats = PartOf(buckets_[bucket], part.parts, part.part).size();
  return part.state.At(step).subspan(planes * part.offsets[bucket], planes * floats);
}

void ColumnState::Hold(std::vector<Holding>& out) const {
  const auto add = [&](const Kept& kept, Holding::Kind kind, int parts, int part) {
    for (const auto step : kept.steps) {
      if (step != Kept::kNothing) out.push_back({kind, column_, parts, part, step});
    }
  };
  add(whole_, Holding::Kind::kParameters, 1, 0);
  for (const auto* parts : {&parts_, &next_}) {
    for (const auto& part : *parts) {
      add(part.state, Holding::Kind::kOptimizer, part.parts, part.part);
      if (part.with_parameters) {
        add(part.parameters, Holding::Kind::kParameters, part.parts, part.part);
      }
    }
  }
}

void ColumnState::Begin(std::int64_t step) {
  whole_.Void(step);
  for (auto& part : parts_) {
    part.state.Void(step);
    part.parameters.Void(step);
  }
}

void ColumnState::Complete(std::int64_t step) {
  if (computes_) whole_.Set(step);
  for (auto& part : parts_) {
    part.state.Set(step);
    if (part.with_parameters) part.parameters.Set(step);
  }
}

// Parts of an installation that was broken off may be the only ones that hold something: kept until
// the next one is complete, as sources. The step that did not come about is void.
void ColumnState::ForgetAllBut(std::int64_t step) {
  for (auto& part : next_) parts_.push_back(std::move(part));
  next_.clear();
  std::erase_if(parts_, [&](const Part& part) { return !part.state.Has(step); });
  for (auto& part : parts_) {
    for (Kept* kept : {&part.state, &part.parameters}) {
      kept->blocks[Kept::Slot(step + 1)] = {};
      kept->Void(step + 1);
    }
  }
  if (!whole_.Has(step)) whole_.Void(step);
}

void ColumnState::Prepare(const Layout& layout, int rank) {
  const auto& at = layout.At(column_);
  computes_ = at.Computes(rank);
  for (auto& block : whole_.blocks) {
    if (computes_ && block.floats().size() != floats_) block = arena_.Take(floats_);
  }
  for (const int part : layout.PartsAt(column_, rank)) {
    const bool own = at.owners[static_cast<std::size_t>(part)] == rank;
    next_.push_back(NewPart(at.parts(), part, own));
  }
}

void ColumnState::Installed(std::int64_t step) {
  if (computes_) whole_.Set(step);
  for (auto& part : next_) {
    part.state.Set(step);
    if (part.with_parameters) part.parameters.Set(step);
  }
}

void ColumnState::Keep(std::int64_t step) {
  parts_ = std::move(next_);
  next_.clear();
  if (!computes_) whole_ = {};
  whole_.Void(step + 1);
}

// Copies what a part of a checkpoint and the parts of this worker have in common.
void ColumnState::Load(const CheckpointPart& read, std::int64_t step) {
  auto values = std::span(read.values);
  const auto copy = [&](std::span<float> into, Extent ours, Extent theirs) {
    const Extent common{std::max(ours.first, theirs.first), std::min(ours.last, theirs.last)};
    if (common.first >= common.last) return;
    std::ranges::copy(values.subspan(common.first - theirs.first, common.size()),
                      into.subspan(common.first - ours.first).begin());
  };
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const auto theirs = PartOf(buckets_[bucket], read.parts, read.part);
    if (computes_) copy(whole_.At(step), {0, floats_}, theirs);
    for (const auto& part : next_) {
      const auto ours = PartOf(buckets_[bucket], part.parts, part.part);
      if (part.with_parameters) copy(ParametersOf(part, step, bucket), ours, theirs);
    }
    for (int plane = 0; plane < planes_; ++plane) {
      values = values.subspan(theirs.size());
      for (const auto& part : next_) {
        const auto ours = PartOf(buckets_[bucket], part.parts, part.part);
        copy(StateOf(part, step, bucket).subspan(static_cast<std::size_t>(plane) * ours.size()),
             ours, theirs);
      }
    }
    values = values.subspan(theirs.size());
  }
}

CheckpointPart ColumnState::Copy(const Part& part, std::int64_t step) const {
  CheckpointPart out{.step = step,
                     .column = column_,
                     .parts = part.parts,
                     .part = part.part,
                     .state_floats = planes_,
                     .buckets = buckets_};
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const auto parameters = ParametersOf(part, step, bucket);
    const auto state = StateOf(part, step, bucket);
    out.values.insert(out.values.end(), parameters.begin(), parameters.end());
    out.values.insert(out.values.end(), state.begin(), state.end());
  }
  return out;
}

std::span<float> ColumnState::Piece(const Part& part, const Holding& holding, const Move& move,
                                    int plane) const {
  const auto extent = PartOf(buckets_[move.bucket], part.parts, part.part);
  const auto all = holding.kind == Holding::Kind::kParameters
                       ? ParametersOf(part, holding.step, move.bucket)
                       : StateOf(part, holding.step, move.bucket);
  return all.subspan(
      static_cast<std::size_t>(plane) * extent.size() + move.extent.first - extent.first,
      move.extent.size());
}

std::span<float> ColumnState::SourceOf(const Move& move, int plane) const {
  const auto& source = move.source;
  const bool parameters = source.kind == Holding::Kind::kParameters;
  if (parameters && source.parts == 1 && whole_.Has(source.step)) {
    return whole_.At(source.step).subspan(move.extent.first, move.extent.size());
  }
  const auto found = std::ranges::find_if(parts_, [&](const Part& part) {
    return part.parts == source.parts && part.part == source.part &&
           (parameters ? part.parameters : part.state).Has(source.step);
  });
  MUSTER_CHECK(found != parts_.end(), "what this worker said it holds is there");
  return Piece(*found, source, move, plane);
}

std::span<float> ColumnState::TargetOf(const Move& move, int plane) const {
  const auto& target = move.target;
  if (target.kind == Holding::Kind::kParameters && computes_) {
    return whole_.At(target.step).subspan(move.extent.first, move.extent.size());
  }
  const auto found = std::ranges::find_if(next_, [&](const Part& part) {
    return part.parts == target.parts && part.part == target.part;
  });
  MUSTER_CHECK(found != next_.end(), "the parts of the view are prepared");
  return Piece(*found, target, move, plane);
}

}  // namespace muster::train
