-- The health of a StatefulSet or DaemonSet of Kubernetes. While Insitu holds it, its
-- strategy is OnDelete, which Argo CD calls Healthy whatever the pods run: then this
-- goes by the label of the hold, and by the annotation that says how far the update is.
-- Else it says what Argo CD says by itself.

local metadata, spec, status = obj.metadata, obj.spec, obj.status or {}

if metadata.deletionTimestamp ~= nil then
  return {status = "Progressing", message = "Pending deletion"}
end

if (metadata.labels or {})["insitu.dev/held"] ~= nil then
  local report = (metadata.annotations or {})["insitu.dev/status"]
  if report == nil or string == nil then
    return {status = "Progressing", message = "Insitu updates its pods in place"}
  end
  local words = {
    PartitionReached = "Healthy", Paused = "Suspended",
    Stalled = "Degraded", ProgressDeadlineExceeded = "Degraded", InvalidOptions = "Degraded",
  }
  local state = report:match('"state":"(%a+)"')
  local message = (report:gsub('\\"', "'"):match('"message":"([^"]*)"')) or state or ""
  return {status = words[state] or "Progressing", message = "Insitu: " .. message}
end

if (status.observedGeneration or 0) < metadata.generation then
  return {status = "Progressing", message = "the present generation of the spec has not been observed"}
end

-- waitsFor returns what there is to wait for, nil if there is nothing.
local function waitsFor()
  local strategy = spec.updateStrategy or {}
  if obj.kind == "DaemonSet" then
    local wanted = status.desiredNumberScheduled or 0
    if strategy.type == "OnDelete" then
      return nil
    elseif (status.updatedNumberScheduled or 0) < wanted then
      return "pods to be updated"
    elseif (status.numberAvailable or 0) < wanted then
      return "pods to be available"
    end
    return nil
  end
  local wanted = spec.replicas or 1
  if (status.readyReplicas or 0) < wanted then
    return "pods to be ready"
  elseif strategy.type ~= "RollingUpdate" then
    return nil
  elseif strategy.rollingUpdate == nil then
    return status.updateRevision ~= status.currentRevision and "the update to be complete" or nil
  elseif (status.updatedReplicas or 0) < wanted - (strategy.rollingUpdate.partition or wanted) then
    return "pods to be updated"
  end
  return nil
end

local missing = waitsFor()
if missing ~= nil then
  return {status = "Progressing", message = "waits for " .. missing}
end
return {status = "Healthy"}
