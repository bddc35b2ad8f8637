#include "train/run/part_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace muster::train {

PartServer::PartServer(const Workload& workload, Fabric& fabric, const PartCut& cut,
                       LiveRound& live, const View& view)
    : workload_(workload), fabric_(fabric), cut_(cut), live_(live), view_(view) {}

std::int64_t PartServer::Version() const {
  return live_.from * view_.shards + static_cast<std::int64_t>(live_.updates.size());
}

AsyncReply PartServer::Pull(int worker, std::int64_t unit, std::span<float> parameters) {
  if (view_.queue != nullptr) {
    const auto next = view_.queue->Take(worker, [this] { return fabric_.aborted(); });
    if (!next) return {};
    unit = *next;
  }
  const std::lock_guard lock(mutex_);
  std::ranges::copy(live_.values.parameters, parameters.begin());
  return {unit, Version()};
}

bool PartServer::Has(std::int64_t unit) const {
  const auto first = live_.from * view_.shards;
  return unit >= first && unit - first < static_cast<std::int64_t>(live_.applied.size());
}

void PartServer::Push(Update update, std::span<const float> gradient) {
  MUSTER_CHECK(Has(update.unit), "a unit is one of the round");
  const std::lock_guard lock(mutex_);
  auto& applied = live_.applied[static_cast<std::size_t>(update.unit - live_.from * view_.shards)];
  if (applied != 0) return;
  cut_.Update(workload_, Version(), gradient, live_.values, live_.spare);
  std::swap(live_.values, live_.spare);
  applied = 1;
  update.generation = view_.generation;
  live_.updates.push_back(std::move(update));
}

// Copied before it is applied: of one who breaks off, what lies there may change meanwhile.
Result<void> PartServer::FetchGradient(int worker, std::span<float> gradient) {
  for (std::size_t i = 0; i < cut_.buckets(); ++i) {
    const auto at = cut_.InPart(i);
    if (at.size() == 0) continue;
    const auto into = std::as_writable_bytes(gradient.subspan(at.first, at.size()));
    auto fetched = fabric_.Fetch(worker, TagOf(live_.from, AsyncTag::kGradient, i), into);
    if (!fetched) return fetched;
  }
  return {};
}

Result<void> PartServer::Serve(int worker, std::span<float> parameters) {
  const auto parts = static_cast<std::size_t>(cut_.parts());
  std::vector<std::int64_t> words(2 + parts);
  std::vector<float> gradient(cut_.floats());
  AsyncReply reply;
  Offers offers(fabric_, worker);
  while (true) {
    auto fetched = fabric_.Fetch(worker, TagOf(live_.from, AsyncTag::kRequest),
                                 std::as_writable_bytes(std::span(words)));
    if (!fetched) return fetched;
    if (auto taken = offers.Taken(); !taken) return taken;
    const AsyncRequest request{words[0], words[1]};
    if (request.what == AsyncRequest::kEnd) return {};
    const bool asks = request.what == AsyncRequest::kPull && view_.queue != nullptr;
    const bool known = request.what == AsyncRequest::kPull || request.what == AsyncRequest::kPush;
    if (!known || (!asks && !Has(request.unit))) {
      return Fail(ErrorCode::kInternal,
                  fmt::format("worker {} asks for unit {}, which is not of the round from step {}",
                              worker, request.unit, live_.from));
    }
    if (request.what == AsyncRequest::kPush) {
      if (auto got = FetchGradient(worker, gradient); !got) return got;
      Push({request.unit, 0, worker, {words.begin() + 2, words.end()}}, gradient);
      reply = {request.unit, 0};
    } else {
      reply = Pull(worker, request.unit, parameters);
      for (std::size_t i = 0; reply.unit != AsyncReply::kNoUnit && i < cut_.buckets(); ++i) {
        const auto at = cut_.InPart(i);
        if (at.size() == 0) continue;
        offers.Add(TagOf(live_.from, AsyncTag::kParameters, i),
                   std::as_bytes(parameters.subspan(at.first, at.size())));
      }
    }
    offers.Add(TagOf(live_.from, AsyncTag::kReply), std::as_bytes(std::span(&reply, 1)));
  }
}

}  // namespace muster::train
