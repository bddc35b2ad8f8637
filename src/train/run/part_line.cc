#include "train/run/part_line.h"

#include <algorithm>
#include <utility>

namespace muster::train {

PartLine::PartLine(Fabric& fabric, int owner, PartCut cut, std::int64_t from, PartServer* here)
    : fabric_(fabric),
      owner_(owner),
      cut_(std::move(cut)),
      from_(from),
      here_(here),
      offers_(fabric, owner) {
  if (here_ != nullptr) piece_.resize(cut_.floats());
}

void PartLine::Send(const AsyncRequest& request, const std::vector<std::int64_t>& bases) {
  words_.assign(2 + static_cast<std::size_t>(cut_.parts()), 0);
  words_[0] = request.what;
  words_[1] = request.unit;
  std::ranges::copy(bases, words_.begin() + 2);
  offers_.Add(TagOf(from_, AsyncTag::kRequest), std::as_bytes(std::span(words_)));
}

void PartLine::Ask(std::int64_t unit) {
  unit_ = unit;
  if (here_ == nullptr) Send({AsyncRequest::kPull, unit}, {});
}

Result<AsyncReply> PartLine::Receive(std::span<float> column) {
  if (here_ != nullptr) {
    const auto reply = here_->Pull(fabric_.rank(), unit_, piece_);
    if (reply.unit != AsyncReply::kNoUnit) cut_.Spread(piece_, column);
    return reply;
  }
  AsyncReply reply;
  auto fetched = fabric_.Fetch(owner_, TagOf(from_, AsyncTag::kReply),
                               std::as_writable_bytes(std::span(&reply, 1)));
  for (std::size_t i = 0; reply.unit != AsyncReply::kNoUnit && i < cut_.buckets(); ++i) {
    const auto at = cut_.InColumn(i);
    if (!fetched || at.size() == 0) continue;
    fetched = fabric_.Fetch(owner_, TagOf(from_, AsyncTag::kParameters, i),
                            std::as_writable_bytes(column.subspan(at.first, at.size())));
  }
  if (fetched) fetched = offers_.Taken();
  if (!fetched) return tl::unexpected(fetched.error());
  return reply;
}

void PartLine::Push(const Update& update, std::span<const float> column) {
  if (here_ != nullptr) {
    cut_.Collect(column, piece_);
    here_->Push(update, piece_);
    return;
  }
  for (std::size_t i = 0; i < cut_.buckets(); ++i) {
    const auto at = cut_.InColumn(i);
    if (at.size() == 0) continue;
    offers_.Add(TagOf(from_, AsyncTag::kGradient, i),
                std::as_bytes(column.subspan(at.first, at.size())));
  }
  Send({AsyncRequest::kPush, update.unit}, update.bases);
}

Result<void> PartLine::Applied() {
  if (here_ != nullptr) return {};
  AsyncReply reply;
  auto fetched = fabric_.Fetch(owner_, TagOf(from_, AsyncTag::kReply),
                               std::as_writable_bytes(std::span(&reply, 1)));
  return fetched ? offers_.Taken() : fetched;
}

Result<void> PartLine::End() {
  if (here_ != nullptr) return {};
  Send({AsyncRequest::kEnd, 0}, {});
  return offers_.Taken();
}

}  // namespace muster::train
