-- The health of a workload of apps.kruise.io that Insitu drives, from what its
-- operator says: the conditions Ready and Stalled, and the list of blockers. It says
-- what kstatus says, with Suspended for an update that its owner has paused.
--
-- Only the base library is there in argocd-cm: no string functions.

local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local ready, stalled = conditions.Ready, conditions.Stalled
local first = (status.blockers or {})[1]

-- naming adds the first blocker to a message, the worst of them.
local function naming(message)
  if first == nil then
    return message
  end
  return message .. "; pod " .. first.pod .. ": " .. first.reason .. ": " .. (first.message or "")
end

if obj.metadata.deletionTimestamp ~= nil then
  return {status = "Progressing", message = "being deleted"}
end
if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "Insitu has not seen this generation of the spec yet"}
end
if stalled ~= nil and stalled.status == "True" then
  if first ~= nil and first.reason == stalled.reason then
    return {status = "Degraded", message = stalled.reason .. ": " .. stalled.message} -- it names the pod
  end
  return {status = "Degraded", message = naming(stalled.reason .. ": " .. stalled.message)}
end
if ready == nil then
  return {status = "Progressing", message = "Insitu has not reported the condition Ready yet"}
end
if ready.status == "True" then
  return {status = "Healthy", message = ready.message}
end
if ready.reason == "Paused" then
  return {status = "Suspended", message = ready.message}
end
return {status = "Progressing", message = ready.message} -- it names the first blocker
