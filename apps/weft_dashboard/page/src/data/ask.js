// SPDX-License-Identifier: Apache-2.0
// Questions to the server (GET) and actions (POST, with the token). Errors are Error objects with
// the words of the server, and its status. The token is kept in this variable only: a reload
// forgets it.

let token = "";

export const setToken = (text) => {
  token = text.trim();
};
export const hasToken = () => token !== "";

async function answer(response) {
  const json = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (response.ok) return json;
  const { status } = response;
  throw Object.assign(new Error(json.error ?? `status ${status}`), { status });
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("the dashboard does not answer");
  }
  return answer(response);
}

export const get = (path, query = {}) => {
  const text = new URLSearchParams(query).toString();
  return request(text === "" ? path : `${path}?${text}`, {});
};

export const post = (path, body) =>
  request(path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
