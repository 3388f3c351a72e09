import { CodedError } from "@turnkeeper/kernel";

/** What is wrong with the choice of a model; `resolveModel` and `customModel` throw these before anything was sent. */
export type ModelChoiceErrorCode =
  /** The name is not `PROVIDER/MODEL`. */
  | "MODEL_NAME_INVALID"
  | "MODEL_PROVIDER_UNKNOWN"
  /** `local/…` is kept for a later version. */
  | "MODEL_PROVIDER_RESERVED"
  | "MODEL_KEY_MISSING"
  /** The key cannot be sent as a header: it holds a line break, a space or a letter outside ASCII. */
  | "MODEL_KEY_INVALID"
  | "MODEL_BASE_URL_MISSING"
  | "MODEL_BASE_URL_INVALID"
  | "MODEL_OPTION_INVALID"
  /** The token file is missing, is none, or is open to other users. */
  | "MODEL_CREDENTIAL_INVALID";

/** How a call to a model failed. */
export type ModelCallErrorCode =
  /** The provider refused the key, or what it asks for with it (401, 403). */
  | "MODEL_AUTH"
  /** Another process has been refreshing the token for too long. Nothing is wrong with the token. */
  | "MODEL_CREDENTIAL_BUSY"
  /** The token must be refreshed and whoever does it did not answer. Nothing is known against the token. */
  | "MODEL_CREDENTIAL_UNAVAILABLE"
  /** No credit or quota is left: waiting does not help (402, `insufficient_quota`). */
  | "MODEL_QUOTA"
  /** The provider does not know the model or the path (404). */
  | "MODEL_NOT_FOUND"
  | "MODEL_RATE_LIMITED"
  | "MODEL_OVERLOADED"
  | "MODEL_SERVER"
  | "MODEL_BAD_REQUEST"
  /** The provider itself said that the conversation is too long; only a shorter one can succeed. */
  | "MODEL_CONTEXT_OVERFLOW"
  /** No connection, or it broke before an answer began. */
  | "MODEL_UNREACHABLE"
  /** Connected, and then silent for longer than the bound. */
  | "MODEL_TIMEOUT"
  /** The answer began and its end never came. What had arrived is not an answer. */
  | "MODEL_STREAM_CUT"
  /** Something answered, but not a model: HTML, a redirect, an event that is not JSON. */
  | "MODEL_BAD_RESPONSE"
  /** The model ended properly and said nothing: no text, no tool call. */
  | "MODEL_EMPTY"
  /** The caller's signal stopped the call. */
  | "MODEL_ABORTED"
  /** Called after `close()`. */
  | "MODEL_CLOSED"
  /** None of these: most likely a defect in a custom model. */
  | "MODEL_FAILED";

export type ModelErrorCode = ModelChoiceErrorCode | ModelCallErrorCode;

/** An error of the choice: it carries no facts but its message. */
export function choiceError(code: ModelErrorCode, message: string): CodedError<ModelErrorCode> {
  return new CodedError(code, message);
}
